//! Reads lists of the store to their end.

use teamster_store::{Delivery, DeliveryFilter, PageRequest, Store, StoreError};

/// The number of deliveries of a page.
pub(super) const PAGE: u32 = 200;

/// Returns all deliveries that a filter selects, the oldest first.
pub(super) async fn all_deliveries(store: &dyn Store, filter: DeliveryFilter) -> Result<Vec<Delivery>, StoreError> {
    let (mut found, mut request) = (Vec::new(), PageRequest::first(PAGE));
    loop {
        let page = store.deliveries(filter.clone(), request.clone()).await?;
        found.extend(page.items);
        match page.next {
            Some(next) => request.cursor = Some(next),
            None => return Ok(found),
        }
    }
}
