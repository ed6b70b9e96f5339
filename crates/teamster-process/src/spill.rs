//! A bounded queue of byte records on disk, for records that wait for a slow consumer.
//!
//! The file is unlinked right after its creation, so it disappears however the program ends. It is
//! a ring buffer: the limit bounds its size, not the amount of data that passes through. Reads and
//! writes are blocking calls of at most a few buffers, served by the page cache. Invariant: records
//! are returned whole, in order and once; a failed push changes nothing.

use std::{fmt, fs::File, io, os::unix::fs::FileExt, path::Path};

use crate::write_signals::without_write_signals;

/// The number of bytes per read or write.
const BUFFER_BYTES: usize = 64 * 1024;

/// The size of the length before each record.
const HEADER_BYTES: usize = 4;

/// Why a record was rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpillError {
    /// The record does not fit. A record larger than the limit never fits.
    #[error("a record of {record} bytes does not fit: {waiting} of at most {max} bytes are waiting")]
    Full {
        /// The number of waiting bytes.
        waiting: u64,
        /// The size of the record.
        record: u64,
        /// The limit.
        max: u64,
    },
    /// The file could not be written; the disk may be full.
    #[error("cannot write waiting records to disk")]
    Io {
        /// The error of the system.
        source: io::Error,
    },
}

/// A first-in, first-out queue of byte records.
pub struct Spill {
    file: File,
    max_bytes: u64,
    records: usize,
    /// Bytes that were read from the file; the first `taken` of them were returned.
    front: Vec<u8>,
    taken: usize,
    /// The unread part of the file, from `read` to `written`, each modulo the limit. Both count
    /// from when the file was last empty.
    read: u64,
    written: u64,
    /// Bytes that are not written to the file yet.
    back: Vec<u8>,
}

impl Spill {
    /// Creates a queue of at most `max_bytes` in an unnamed file in `directory`.
    pub fn create(directory: &Path, max_bytes: u64) -> io::Result<Self> {
        let file = tempfile::tempfile_in(directory)?;
        Ok(Self { file, max_bytes, records: 0, front: Vec::new(), taken: 0, read: 0, written: 0, back: Vec::new() })
    }

    /// Adds a record.
    pub fn push(&mut self, record: &[u8]) -> Result<(), SpillError> {
        let full = SpillError::Full { waiting: self.bytes(), record: record.len() as u64, max: self.max_bytes };
        let Ok(header) = u32::try_from(record.len()) else {
            return Err(full);
        };
        if self.bytes() + u64::from(header) + HEADER_BYTES as u64 > self.max_bytes {
            return Err(full);
        }
        let before = self.back.len();
        self.back.extend_from_slice(&header.to_le_bytes());
        self.back.extend_from_slice(record);
        if self.back.len() >= BUFFER_BYTES
            && let Err(source) = self.write_back()
        {
            self.back.truncate(before);
            return Err(SpillError::Io { source });
        }
        self.records += 1;
        Ok(())
    }

    /// Removes and returns the oldest record. After an error it is still in the queue.
    pub fn pop(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.records == 0 {
            return Ok(None);
        }
        self.load(HEADER_BYTES)?;
        let Some(header) = self.waiting().first_chunk::<HEADER_BYTES>().copied() else {
            return Err(cut());
        };
        let length = usize::try_from(u32::from_le_bytes(header)).map_err(|_| cut())?;
        self.load(HEADER_BYTES + length)?;
        let record = self.waiting().get(HEADER_BYTES..HEADER_BYTES + length).ok_or_else(cut)?.to_vec();
        self.taken += HEADER_BYTES + length;
        self.records -= 1;
        if self.records == 0 {
            self.start_over();
        }
        Ok(Some(record))
    }

    /// Returns the number of waiting records.
    pub fn len(&self) -> usize {
        self.records
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Returns the number of waiting bytes, including four for each record's length.
    pub fn bytes(&self) -> u64 {
        (self.waiting().len() + self.back.len()) as u64 + (self.written - self.read)
    }

    fn waiting(&self) -> &[u8] {
        self.front.get(self.taken..).unwrap_or_default()
    }

    /// Loads at least `wanted` of the waiting bytes into `front`.
    fn load(&mut self, wanted: usize) -> io::Result<()> {
        if self.waiting().len() >= wanted {
            return Ok(());
        }
        self.front.drain(..self.taken);
        self.taken = 0;
        let held = self.front.len();
        let in_file = self.written - self.read;
        let count = in_file.min(wanted.saturating_sub(held).max(BUFFER_BYTES) as u64);
        if let Ok(count) = usize::try_from(count) {
            self.front.resize(held + count, 0);
            let space = self.front.get_mut(held..).unwrap_or_default();
            if let Err(error) = transfer(self.read, self.max_bytes, space, |part, at| self.file.read_exact_at(part, at))
            {
                self.front.truncate(held);
                return Err(error);
            }
        }
        self.read += count;
        if self.front.len() < wanted && self.read == self.written {
            self.front.append(&mut self.back);
        }
        Ok(())
    }

    fn write_back(&mut self) -> io::Result<()> {
        let file = &self.file;
        without_write_signals(|| {
            transfer(self.written, self.max_bytes, &mut self.back, |part, at| file.write_all_at(part, at))
        })?;
        self.written += self.back.len() as u64;
        self.back.clear();
        Ok(())
    }

    fn start_over(&mut self) {
        self.front.clear();
        self.taken = 0;
        if self.written > 0 {
            self.read = 0;
            self.written = 0;
            // This only frees disk space early; the file is bounded anyway.
            _ = self.file.set_len(0);
        }
    }
}

/// Transfers bytes from or to a position in the ring, in two parts if they wrap around its end.
fn transfer(
    position: u64,
    ring: u64,
    bytes: &mut [u8],
    mut one: impl FnMut(&mut [u8], u64) -> io::Result<()>,
) -> io::Result<()> {
    let at = position % ring;
    let until_end = usize::try_from(ring - at).unwrap_or(usize::MAX).min(bytes.len());
    let (first, second) = bytes.split_at_mut(until_end);
    one(first, at)?;
    one(second, 0)
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "a record on disk is truncated")
}

impl fmt::Debug for Spill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spill").field("records", &self.records).field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn spill(max_bytes: u64) -> Spill {
        Spill::create(&std::env::temp_dir(), max_bytes).unwrap()
    }

    #[test]
    fn records_are_returned_whole_and_in_order() {
        let mut spill = spill(1024);
        for record in [b"one".as_slice(), b"", b"three"] {
            spill.push(record).unwrap();
        }
        assert_eq!((spill.len(), spill.bytes()), (3, 20));
        assert_eq!(spill.pop().unwrap().unwrap(), b"one");
        assert_eq!(spill.pop().unwrap().unwrap(), b"");
        assert_eq!(spill.pop().unwrap().unwrap(), b"three");
        assert_eq!(spill.pop().unwrap(), None);
        assert_eq!((spill.len(), spill.bytes()), (0, 0));
    }

    #[test]
    fn a_record_that_does_not_fit_changes_nothing() {
        let mut spill = spill(20);
        spill.push(b"0123456789").unwrap();
        let error = spill.push(b"abc").unwrap_err();
        assert!(matches!(error, SpillError::Full { waiting: 14, record: 3, max: 20 }));
        spill.push(b"ab").unwrap();
        assert_eq!(spill.pop().unwrap().unwrap(), b"0123456789");
        assert_eq!(spill.pop().unwrap().unwrap(), b"ab");
    }

    #[test]
    fn the_file_stays_within_the_limit_however_much_passes_through() {
        let mut spill = spill(1024 * 1024);
        let record = vec![7; 30_000];
        for _ in 0..20 {
            spill.push(&record).unwrap();
        }
        for _ in 0..500 {
            spill.push(&record).unwrap();
            assert_eq!(spill.pop().unwrap().unwrap(), record);
            assert!(spill.file.metadata().unwrap().len() <= 1024 * 1024);
        }
    }

    #[test]
    fn an_empty_queue_takes_no_disk() {
        let mut spill = spill(1024 * 1024);
        for _ in 0..10 {
            spill.push(&vec![7; 50_000]).unwrap();
        }
        assert!(spill.file.metadata().unwrap().len() > 0);
        while spill.pop().unwrap().is_some() {}
        assert_eq!(spill.file.metadata().unwrap().len(), 0);
    }

    #[test]
    fn a_push_that_the_disk_rejects_loses_no_waiting_record() {
        let mut spill = spill(1024 * 1024);
        spill.push(b"first").unwrap();
        // Writing to a file that is open for reading only fails, as a full disk does.
        spill.file = File::open("/dev/null").unwrap();
        assert!(matches!(spill.push(&vec![7; BUFFER_BYTES]), Err(SpillError::Io { .. })));
        assert_eq!(spill.len(), 1);
        assert_eq!(spill.pop().unwrap().unwrap(), b"first");
        assert_eq!(spill.pop().unwrap(), None);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        Pop,
    }

    fn step() -> impl Strategy<Value = Step> {
        let size = prop_oneof![0usize..200, 20_000usize..90_000];
        prop_oneof![size.prop_map(Step::Push), Just(Step::Pop)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_behaves_like_a_queue_in_memory(steps in prop::collection::vec(step(), 0..120)) {
            const MAX: u64 = 300_000;
            let mut spill = spill(MAX);
            let mut model: VecDeque<Vec<u8>> = VecDeque::new();
            for (number, step) in steps.into_iter().enumerate() {
                let waiting: u64 = model.iter().map(|record| record.len() as u64 + 4).sum();
                prop_assert_eq!((spill.bytes(), spill.len()), (waiting, model.len()));
                match step {
                    Step::Push(size) => {
                        let record = number.to_le_bytes().into_iter().cycle().take(size).collect::<Vec<_>>();
                        let pushed = spill.push(&record);
                        prop_assert_eq!(pushed.is_ok(), waiting + size as u64 + 4 <= MAX);
                        if pushed.is_ok() {
                            model.push_back(record);
                        }
                    }
                    Step::Pop => prop_assert!(spill.pop().unwrap() == model.pop_front()),
                }
            }
            while let Some(record) = model.pop_front() {
                prop_assert!(spill.pop().unwrap() == Some(record));
            }
            prop_assert!(spill.is_empty());
        }
    }
}
