use std::task::{Context, Waker};
use std::time::Duration;

use super::*;

const MANY: usize = 500;

fn permits(turns: usize) -> Permits {
    let permits = Permits::default();
    permits.limit_turns(NonZeroUsize::new(turns).unwrap());
    permits
}

fn process_permits(processes: usize) -> Permits {
    let permits = Permits::default();
    permits.limit_processes(NonZeroUsize::new(processes).unwrap());
    permits
}

fn queue(permits: &Permits, key: &str) -> Ticket {
    permits.enqueue(Some(key), "agent", false).unwrap()
}

fn is_granted(ticket: &mut Ticket) -> bool {
    let mut granted = std::pin::pin!(ticket.granted());
    granted.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn granted(tickets: &mut [Ticket]) -> Vec<bool> {
    tickets.iter_mut().map(is_granted).collect()
}

#[test]
fn turns_are_granted_in_the_order_of_the_queue_whatever_is_polled_first() {
    let permits = permits(1);
    let mut tickets: Vec<_> = (0..MANY).map(|_| queue(&permits, "")).collect();
    while !tickets.is_empty() {
        tickets.reverse();
        let mut found = granted(&mut tickets);
        tickets.reverse();
        found.reverse();
        assert!(found[0] && !found[1..].contains(&true), "{found:?}");
        tickets.remove(0);
    }
    assert_eq!(permits.stats(), RuntimeStats::default());
}

#[test]
fn no_more_turns_run_at_once_than_the_limit_allows() {
    let permits = permits(3);
    let mut tickets: Vec<_> = (0..5).map(|_| queue(&permits, "")).collect();
    assert_eq!(granted(&mut tickets), [true, true, true, false, false]);
    tickets.remove(1);
    assert_eq!(granted(&mut tickets), [true, true, true, false]);
}

#[test]
fn a_dropped_ticket_delays_no_other_whether_it_was_granted_or_not() {
    let permits = permits(1);
    let first = queue(&permits, "");
    let (second, third, mut fourth) = (queue(&permits, ""), queue(&permits, ""), queue(&permits, ""));
    drop(second);
    // The third is granted now, and was not polled since.
    drop(first);
    drop(third);
    assert!(is_granted(&mut fourth));
}

#[tokio::test]
async fn a_cancelled_wait_keeps_its_place_in_the_queue() {
    let permits = permits(1);
    let first = queue(&permits, "");
    let (mut second, mut third) = (queue(&permits, ""), queue(&permits, ""));
    for _ in 0..3 {
        assert!(tokio::time::timeout(Duration::ZERO, second.granted()).await.is_err());
    }
    drop(first);
    second.granted().await;
    assert!(!is_granted(&mut third));
}

#[test]
fn without_a_limit_no_turn_waits() {
    let permits = Permits::default();
    let mut tickets: Vec<_> = (0..MANY).map(|_| queue(&permits, "")).collect();
    assert!(tickets.iter_mut().all(is_granted));
}

#[test]
fn keys_alternate_and_positions_show_the_order() {
    let permits = permits(1);
    let running = queue(&permits, "a");
    let keys = ["a", "a", "a", "b", "c", "b"];
    let mut waiting: Vec<_> = keys.iter().map(|key| queue(&permits, key)).collect();
    let positions: Vec<_> = waiting.iter().map(|ticket| ticket.position().unwrap()).collect();
    assert_eq!(positions, [1, 4, 6, 2, 3, 5]);
    drop(running);
    let mut order = Vec::new();
    while !waiting.is_empty() {
        let at = waiting.iter_mut().position(is_granted).unwrap();
        assert_eq!(waiting[at].position(), None);
        waiting.remove(at);
        order.push(at);
    }
    // As indices into what is left each time: a, b, c, a, b, a.
    assert_eq!(order, [0, 2, 2, 0, 1, 0]);
}

#[test]
fn turns_beyond_the_queue_limit_are_rejected_unless_they_need_not_wait() {
    let permits = permits(1);
    permits.limit_queue(1);
    let _running = queue(&permits, "a");
    let waiting = queue(&permits, "a");
    assert_eq!(permits.enqueue(Some("b"), "agent", false).unwrap_err(), QueueFull { limit: 1 });
    drop(waiting);
    assert!(permits.enqueue(Some("b"), "agent", false).is_ok());
}

#[test]
fn a_turn_that_got_its_answer_is_granted_before_new_turns() {
    let permits = permits(1);
    let mut first = queue(&permits, "");
    assert!(is_granted(&mut first));
    let (mut second, mut third) = (queue(&permits, ""), queue(&permits, ""));
    first.release();
    assert_eq!(permits.stats().total.awaiting_answers, 1);
    assert!(is_granted(&mut second) && !is_granted(&mut third));
    first.requeue();
    assert_eq!((first.position(), third.position()), (Some(1), Some(2)));
    drop(second);
    assert!(is_granted(&mut first) && !is_granted(&mut third));
    first.release();
    drop(first);
    assert!(is_granted(&mut third));
    drop(third);
    assert_eq!(permits.stats(), RuntimeStats::default());
}

#[test]
fn a_turn_that_waits_for_a_process_holds_no_turn_permit() {
    let permits = process_permits(1);
    permits.limit_turns(NonZeroUsize::MIN);
    let mut first = permits.enqueue(None, "agent", true).unwrap();
    assert!(is_granted(&mut first));
    let process = first.take_process().unwrap();
    first.release();
    let mut second = permits.enqueue(None, "agent", true).unwrap();
    assert!(!is_granted(&mut second), "there is no process");
    first.requeue();
    assert!(is_granted(&mut first), "the place is free");
    drop((first, process));
    assert!(is_granted(&mut second));
}

#[test]
fn the_process_that_was_idle_longest_is_closed_for_a_turn_that_needs_one() {
    let permits = process_permits(2);
    let (old, new) = (permits.try_acquire_process("agent").unwrap(), permits.try_acquire_process("agent").unwrap());
    assert!(permits.try_acquire_process("agent").is_none());
    let (idle_new, idle_old) = (new.idle(), old.idle());
    let mut turn = permits.enqueue(None, "agent", true).unwrap();
    assert!(!is_granted(&mut turn));
    assert!(idle_new.wanted.is_cancelled() && !idle_old.wanted.is_cancelled(), "that one has been idle longer");
    idle_new.accept();
    assert!(!idle_old.wanted.is_cancelled(), "one is enough");
    drop(new);
    assert!(is_granted(&mut turn));
}

#[test]
fn if_a_reclaimed_process_is_used_again_another_one_is_closed() {
    let permits = process_permits(2);
    let (one, two) = (permits.try_acquire_process("agent").unwrap(), permits.try_acquire_process("agent").unwrap());
    let (idle, other) = (one.idle(), two.idle());
    let _turn = permits.enqueue(None, "agent", true).unwrap();
    assert!(idle.wanted.is_cancelled());
    drop(idle);
    assert!(other.wanted.is_cancelled());
}

proptest::proptest! {
    /// Whatever comes, no limit is exceeded, and when all is given back, nothing is counted.
    #[test]
    fn limits_hold_in_any_order_of_enqueue_grant_release_and_drop(steps in proptest::collection::vec((0u8..6, 0usize..8), 0..200)) {
        let permits = process_permits(2);
        permits.limit_turns(NonZeroUsize::new(3).unwrap());
        let mut tickets: Vec<(Ticket, Option<ProcessPermit>)> = Vec::new();
        for (step, at) in steps {
            let length = tickets.len().max(1);
            match (step, tickets.get_mut(at % length)) {
                (0, _) => tickets.push((permits.enqueue(Some(&at.to_string()), "agent", at % 2 == 0).unwrap(), None)),
                (1, Some((ticket, process))) => {
                    let takes = is_granted(ticket) && process.is_none();
                    *process = if takes { ticket.take_process() } else { process.take() };
                }
                (2, Some((ticket, _))) => {
                    let granted = is_granted(ticket);
                    if granted {
                        ticket.release();
                    }
                }
                (3, Some((ticket, _))) => ticket.requeue(),
                (4, Some(_)) => drop(tickets.swap_remove(at % length)),
                _ => {}
            }
            let stats = permits.stats().total;
            proptest::prop_assert!(stats.running_turns <= 3 && stats.live_processes <= 2, "{:?}", stats);
            let can_run = stats.running_turns < 3 && stats.live_processes < 2;
            proptest::prop_assert!(!can_run || stats.waiting_turns == 0, "{:?}", stats);
        }
        drop(tickets);
        proptest::prop_assert_eq!(permits.stats(), RuntimeStats::default());
    }
}
