//! The addresses to which requests may be sent.
//!
//! A URL of the configuration may name a host that resolves to an internal address, now or later. The resolver of the client
//! returns only permitted addresses, and the client connects to nothing else: there is no second look-up between check and use.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Which addresses are permitted besides public ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressPolicy {
    pub(crate) allow_private: bool,
    pub(crate) allow_loopback: bool,
}

/// Why an address is forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forbidden {
    Loopback,
    Private,
    /// Multicast, documentation, reserved: never permitted.
    Special,
}

impl fmt::Display for Forbidden {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Loopback => "has a loopback address",
            Self::Private => "has a private address",
            Self::Special => "has an address that is not one of a host",
        })
    }
}

impl AddressPolicy {
    /// Returns why an address is forbidden.
    pub(crate) fn forbidden(self, address: IpAddr) -> Option<Forbidden> {
        let class = match address {
            IpAddr::V4(address) => class_v4(address),
            IpAddr::V6(address) => class_v6(address),
        };
        class.filter(|class| match class {
            Forbidden::Loopback => !self.allow_loopback,
            Forbidden::Private => !self.allow_private,
            Forbidden::Special => true,
        })
    }
}

fn class_v4(address: Ipv4Addr) -> Option<Forbidden> {
    if address.is_loopback() {
        return Some(Forbidden::Loopback);
    }
    match address.octets() {
        // Link-local addresses include the metadata services of clouds.
        [169, 254, _, _] | [100, 64..=127, _, _] | [198, 18 | 19, _, _] => Some(Forbidden::Private),
        _ if address.is_private() => Some(Forbidden::Private),
        [0 | 224..=255, ..] | [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [192, 88, 99, _] => {
            Some(Forbidden::Special)
        }
        _ => None,
    }
}

fn class_v6(address: Ipv6Addr) -> Option<Forbidden> {
    if address.is_loopback() {
        return Some(Forbidden::Loopback);
    }
    if let Some(inner) = embedded_v4(address) {
        return class_v4(inner);
    }
    if address.is_unique_local() || address.is_unicast_link_local() {
        return Some(Forbidden::Private);
    }
    match address.segments() {
        // Site-local addresses are obsolete and still private.
        [0xfec0..=0xfeff, ..] => Some(Forbidden::Private),
        // Only 2000::/3 is in use for hosts; documentation and Teredo are parts of it.
        [0x2001, 0x0db8 | 0, ..] | [0x3fff, 0..=0x0fff, ..] => Some(Forbidden::Special),
        [0x2000..=0x3fff, ..] => None,
        _ => Some(Forbidden::Special),
    }
}

/// Returns the IPv4 address to which a gateway or the system translates an IPv6 address.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return Some(mapped);
    }
    let [.., high, low] = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        // NAT64, and the obsolete IPv4-compatible form.
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0, 0, 1..=0xffff, _] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

/// Resolves host names to permitted addresses only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GuardedResolver(pub(crate) AddressPolicy);

/// All addresses of a host are forbidden.
#[derive(Debug, thiserror::Error)]
#[error("the host {host} {reason}")]
pub(crate) struct ForbiddenHost {
    host: String,
    reason: Forbidden,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.0;
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let reason = found.iter().find_map(|address| policy.forbidden(address.ip()));
            let permitted: Vec<_> =
                found.into_iter().filter(|address| policy.forbidden(address.ip()).is_none()).collect();
            match reason {
                Some(reason) if permitted.is_empty() => Err(ForbiddenHost { host, reason }.into()),
                _ => Ok(Box::new(permitted.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: AddressPolicy = AddressPolicy { allow_private: false, allow_loopback: false };

    fn forbidden(address: &str) -> Option<Forbidden> {
        PUBLIC.forbidden(address.parse().unwrap())
    }

    #[test]
    fn public_addresses_are_permitted() {
        for address in ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"] {
            assert_eq!(forbidden(address), None, "{address}");
        }
    }

    #[test]
    fn private_and_special_addresses_are_forbidden_in_each_form() {
        for (address, wanted) in [
            ("127.0.0.1", Forbidden::Loopback),
            ("127.255.0.1", Forbidden::Loopback),
            ("::1", Forbidden::Loopback),
            ("::ffff:127.0.0.1", Forbidden::Loopback),
            ("10.1.2.3", Forbidden::Private),
            ("172.16.0.1", Forbidden::Private),
            ("192.168.0.1", Forbidden::Private),
            ("169.254.169.254", Forbidden::Private),
            ("100.64.0.1", Forbidden::Private),
            ("198.18.0.1", Forbidden::Private),
            ("fd00::1", Forbidden::Private),
            ("fe80::1", Forbidden::Private),
            ("fec0::1", Forbidden::Private),
            ("::ffff:10.0.0.1", Forbidden::Private),
            ("64:ff9b::10.0.0.1", Forbidden::Private),
            ("2002:0a00:0001::", Forbidden::Private),
            ("::10.0.0.1", Forbidden::Private),
            ("0.0.0.0", Forbidden::Special),
            ("255.255.255.255", Forbidden::Special),
            ("224.0.0.1", Forbidden::Special),
            ("192.0.2.1", Forbidden::Special),
            ("::", Forbidden::Special),
            ("ff02::1", Forbidden::Special),
            ("2001:db8::1", Forbidden::Special),
            ("2001::1", Forbidden::Special),
        ] {
            assert_eq!(forbidden(address), Some(wanted), "{address}");
        }
    }

    #[test]
    fn each_permission_covers_its_class_only() {
        let loopback = AddressPolicy { allow_loopback: true, ..PUBLIC };
        assert_eq!(loopback.forbidden("127.0.0.1".parse().unwrap()), None);
        assert_eq!(loopback.forbidden("10.0.0.1".parse().unwrap()), Some(Forbidden::Private));
        let private = AddressPolicy { allow_private: true, ..PUBLIC };
        assert_eq!(private.forbidden("10.0.0.1".parse().unwrap()), None);
        assert_eq!(private.forbidden("::1".parse().unwrap()), Some(Forbidden::Loopback));
        assert_eq!(private.forbidden("224.0.0.1".parse().unwrap()), Some(Forbidden::Special));
    }

    #[tokio::test]
    async fn a_host_name_with_a_forbidden_address_is_not_resolved() {
        let error = GuardedResolver(PUBLIC).resolve("localhost".parse().unwrap()).await.err().unwrap();
        assert_eq!(error.to_string(), "the host localhost has a loopback address");
        let policy = AddressPolicy { allow_loopback: true, ..PUBLIC };
        assert!(GuardedResolver(policy).resolve("localhost".parse().unwrap()).await.unwrap().count() > 0);
    }
}
