//! Reading from a source that may send more than one is willing to hold.

use std::io::{self, Read};

/// Reads everything, or stops one byte past `max_bytes` and refuses.
pub fn read_bounded(reader: impl Read, max_bytes: usize) -> Result<Vec<u8>, BoundedReadError> {
    let mut bytes = Vec::new();
    let one_too_many = (max_bytes as u64).saturating_add(1);
    reader.take(one_too_many).read_to_end(&mut bytes)?;
    if bytes.len() > max_bytes {
        return Err(BoundedReadError::TooLarge { limit: max_bytes });
    }
    Ok(bytes)
}

/// Why a bounded read failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BoundedReadError {
    /// The source failed.
    #[error("reading failed")]
    Io(#[from] io::Error),
    /// The source holds more than the limit.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// The largest size allowed.
        limit: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_passes_and_one_more_does_not() {
        assert_eq!(read_bounded(&b"abc"[..], 3).unwrap(), b"abc");
        assert_eq!(read_bounded(&b""[..], 0).unwrap(), b"");
        assert!(matches!(
            read_bounded(&b"abcd"[..], 3),
            Err(BoundedReadError::TooLarge { limit: 3 })
        ));
        assert!(read_bounded(&b"abcd"[..], usize::MAX).is_ok());
    }

    #[test]
    fn an_endless_source_is_left_after_one_byte_too_many() {
        let mut source = io::repeat(b'x').take(1 << 20);
        assert!(read_bounded(&mut source, 1000).is_err());
        assert_eq!(source.limit(), (1 << 20) - 1001);
    }

    #[test]
    fn a_failing_source_is_reported() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::ConnectionReset.into())
            }
        }
        assert!(matches!(
            read_bounded(Broken, 3),
            Err(BoundedReadError::Io(_))
        ));
    }
}
