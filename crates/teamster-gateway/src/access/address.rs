//! The address of a client.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::{Extensions, HeaderMap};

/// The address of the client, behind a proxy or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl ClientAddress {
    /// Finds the address of the client.
    ///
    /// Behind a proxy it is the last entry of the last `X-Forwarded-For`, which the proxy wrote. The client can forge
    /// earlier entries. A request without a valid entry has the address of the proxy.
    pub fn find(extensions: &Extensions, headers: &HeaderMap, behind_proxy: bool) -> Self {
        let forwarded = behind_proxy.then(|| forwarded_for(headers)).flatten();
        let peer = extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
        // A request without a peer was not read from a socket. All of them share one address.
        Self(forwarded.or(peer).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)).to_canonical())
    }

    /// Returns the address to which limits apply. For IPv6 this is the /64 network, because a client has at least that.
    pub fn limited(self) -> IpAddr {
        match self.0 {
            IpAddr::V6(address) if !address.is_loopback() => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            address => address,
        }
    }
}

fn forwarded_for(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
    let hop = last.rsplit(',').next()?.trim();
    let address = hop.parse::<IpAddr>().or_else(|_| hop.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().or_else(|| hop.strip_prefix('[')?.strip_suffix(']')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(peer: &str, forwarded: &[&str], behind_proxy: bool) -> String {
        let (mut extensions, mut headers) = (Extensions::new(), HeaderMap::new());
        extensions.insert(ConnectInfo(peer.parse::<SocketAddr>().unwrap()));
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        ClientAddress::find(&extensions, &headers, behind_proxy).0.to_string()
    }

    #[test]
    fn without_a_proxy_a_forwarded_address_is_ignored() {
        assert_eq!(find("192.0.2.1:9", &["198.51.100.7"], false), "192.0.2.1");
    }

    #[test]
    fn behind_a_proxy_only_the_last_hop_counts() {
        assert_eq!(find("127.0.0.1:9", &["198.51.100.7, 203.0.113.5"], true), "203.0.113.5");
        assert_eq!(find("127.0.0.1:9", &["203.0.113.5", "198.51.100.7"], true), "198.51.100.7");
        assert_eq!(find("127.0.0.1:9", &["[2001:db8::1]:443"], true), "2001:db8::1");
        assert_eq!(find("127.0.0.1:9", &["203.0.113.5:8000"], true), "203.0.113.5");
        assert_eq!(find("127.0.0.1:9", &["203.0.113.5, unknown"], true), "127.0.0.1");
        assert_eq!(find("[::ffff:192.0.2.1]:9", &[], true), "192.0.2.1");
    }

    #[test]
    fn a_network_of_ipv6_shares_its_limits() {
        let limited = |text: &str| ClientAddress(text.parse().unwrap()).limited();
        assert_eq!(limited("2001:db8:1:2:3::1"), limited("2001:db8:1:2:4::9"));
        assert_ne!(limited("2001:db8:1:2::1"), limited("2001:db8:1:3::1"));
        assert_ne!(limited("192.0.2.1"), limited("192.0.2.2"));
    }
}
