//! Tells an encrypted OpenPGP message from noise. There is no magic number: a
//! message begins with one session key packet for each key or passphrase, and
//! the encrypted data follow. Each field that has few good values is checked.
//!
//! Format: RFC 9580; also RFC 4880, and the packets 20 and SKESK 5 of `gpg` 2.3.
#![forbid(unsafe_code)]

/// Public-key encrypted session key.
const PKESK: u8 = 1;
/// Symmetric-key encrypted session key.
const SKESK: u8 = 3;
/// Symmetrically encrypted data: bare, with integrity protection, and OCB.
const ENCRYPTED_DATA: [u8; 3] = [9, 18, 20];

struct Packet<'a> {
    tag: u8,
    /// `None` if the length is given in parts or not at all.
    len: Option<usize>,
    /// The part of the body, and of the packets after it, that lies within the head.
    rest: &'a [u8],
}

/// Whether `head` is the start of an encrypted message: at least one session
/// key packet, and after it, where that can be seen, nothing that does not
/// belong there.
pub(super) fn begins(head: &[u8]) -> bool {
    let mut rest = head;
    let mut keys = 0;
    while let Some(packet) = packet(rest) {
        if ENCRYPTED_DATA.contains(&packet.tag) {
            return keys > 0;
        }
        let Some(len) = packet.len.filter(|&len| is_session_key(&packet, len)) else {
            return false;
        };
        keys += 1;
        rest = packet.rest.get(len..).unwrap_or_default();
    }
    // If the head ends within a packet's header, nothing speaks against it; other bytes do.
    keys > 0 && rest.len() < 6
}

/// Parses the header of a packet (RFC 9580, section 4.2).
fn packet(bytes: &[u8]) -> Option<Packet<'_>> {
    let (&first, rest) = bytes.split_first()?;
    if first & 0x80 == 0 {
        return None;
    }
    let new_format = first & 0x40 != 0;
    let tag = if new_format { first & 0x3F } else { first >> 2 & 0x0F };
    let (len, rest) = match (new_format, first & 3, rest) {
        (true, _, [len @ 0..192, rest @ ..]) => (Some(usize::from(*len)), rest),
        (true, _, [high @ 192..224, low, rest @ ..]) => {
            (Some((usize::from(*high) - 192) * 256 + usize::from(*low) + 192), rest)
        }
        (true, _, [224..=254, rest @ ..]) | (false, 3, rest) => (None, rest),
        (true, _, [255, a, b, c, d, rest @ ..]) | (false, 2, [a, b, c, d, rest @ ..]) => {
            (usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).ok(), rest)
        }
        (false, 0, [len, rest @ ..]) => (Some(usize::from(*len)), rest),
        (false, 1, [a, b, rest @ ..]) => (Some(usize::from(u16::from_be_bytes([*a, *b]))), rest),
        _ => return None,
    };
    Some(Packet { tag, len, rest })
}

fn is_session_key(packet: &Packet<'_>, len: usize) -> bool {
    match packet.tag {
        PKESK => is_public_key_session_key(packet.rest, len),
        SKESK => is_symmetric_session_key(packet.rest, len),
        _ => false,
    }
}

/// RFC 9580, section 5.1. The longest real one is of an RSA key of 16384 bits.
fn is_public_key_session_key(body: &[u8], len: usize) -> bool {
    /// RSA, ElGamal, ECDH, X25519, X448, ML-KEM.
    fn is_algorithm(algorithm: u8) -> bool {
        matches!(algorithm, 1 | 2 | 8 | 16 | 18 | 25 | 26 | 35 | 36)
    }
    if !(20..=2100).contains(&len) {
        return false;
    }
    match body {
        [3, _, _, _, _, _, _, _, _, algorithm @ 1..=2, high, low, ..] => {
            // RSA: one number, whose length in bits stands before it.
            let bits = usize::from(u16::from_be_bytes([*high, *low]));
            is_algorithm(*algorithm) && len == 12 + bits.div_ceil(8)
        }
        [3, _, _, _, _, _, _, _, _, algorithm, ..] => is_algorithm(*algorithm),
        [6, 0, algorithm, ..] => is_algorithm(*algorithm),
        [6, 21, 4, rest @ ..] => rest.get(20).copied().is_some_and(is_algorithm),
        [6, 33, 6, rest @ ..] => rest.get(32).copied().is_some_and(is_algorithm),
        _ => false,
    }
}

/// RFC 9580, section 5.3.
fn is_symmetric_session_key(body: &[u8], len: usize) -> bool {
    match body {
        [4, 1..=13, s2k_and_more @ ..] => {
            let Some(s2k) = s2k_len(s2k_and_more) else {
                return false;
            };
            // An encrypted session key may follow: algorithm and key.
            len == 2 + s2k || (2 + s2k + 17..=2 + s2k + 33).contains(&len)
        }
        [5, 1..=13, 1..=3, s2k_and_more @ ..] => s2k_len(s2k_and_more).is_some() && len < 128,
        [6, _, 1..=13, 1..=3, s2k, s2k_and_more @ ..] => {
            s2k_len(s2k_and_more) == Some(usize::from(*s2k)) && len < 128
        }
        _ => false,
    }
}

/// The length of a string-to-key specifier (RFC 9580, section 3.7.1).
fn s2k_len(specifier: &[u8]) -> Option<usize> {
    match specifier {
        [0, 1..=14, ..] => Some(2),
        [1, 1..=14, ..] => Some(10),
        [3, 1..=14, ..] => Some(11),
        [4, ..] => Some(20),
        _ => None,
    }
}
