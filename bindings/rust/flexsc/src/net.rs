// SPDX-License-Identifier: MIT
//! Conversion of socket addresses to and from the kernel's form.

use crate::driver::Room;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

pub const AF_INET: u16 = 2;
pub const AF_INET6: u16 = 10;

/// The length's offset, behind the largest address.
pub const LENGTH: usize = 16;
/// The size of a `struct sockaddr_storage`.
pub const MOST: u32 = 128;

/// An address, and its length.
pub fn encode(address: &SocketAddr) -> ([u8; 28], u32) {
    let mut bytes = [0; 28];
    let mut put = |at: usize, what: &[u8]| bytes[at..at + what.len()].copy_from_slice(what);
    put(2, &address.port().to_be_bytes());
    let length = match address {
        SocketAddr::V4(address) => {
            put(0, &AF_INET.to_ne_bytes());
            put(4, &address.ip().octets());
            16
        }
        SocketAddr::V6(address) => {
            put(0, &AF_INET6.to_ne_bytes());
            put(4, &address.flowinfo().to_ne_bytes());
            put(8, &address.ip().octets());
            put(24, &address.scope_id().to_ne_bytes());
            28
        }
    };
    (bytes, length)
}

/// Decode the address that `accept4()` stored in the room. None: neither an IPv4 nor an
/// IPv6 address.
pub fn decode(room: &Room) -> Option<SocketAddr> {
    let mut bytes = [0; 32];
    for (to, from) in bytes.chunks_mut(8).zip(room) {
        to.copy_from_slice(&from.to_ne_bytes());
    }
    fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
        let mut part = [0; N];
        part.copy_from_slice(&bytes[at..at + N]);
        part
    }
    let port = u16::from_be_bytes(part(&bytes, 2));
    match u16::from_ne_bytes(part(&bytes, 0)) {
        AF_INET => {
            let ip = Ipv4Addr::from(part::<4>(&bytes, 4));
            Some(SocketAddrV4::new(ip, port).into())
        }
        AF_INET6 => {
            let ip = Ipv6Addr::from(part::<16>(&bytes, 8));
            let flow = u32::from_ne_bytes(part(&bytes, 4));
            let scope = u32::from_ne_bytes(part(&bytes, 24));
            Some(SocketAddrV6::new(ip, port, flow, scope).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_they_went() {
        for text in ["127.0.0.1:80", "[::1]:65535", "[fe80::1%7]:1"] {
            let address: SocketAddr = text.parse().unwrap();
            let (bytes, length) = encode(&address);
            assert_eq!(length, if address.is_ipv4() { 16 } else { 28 });
            let mut room = [0; 32];
            for (to, from) in room.iter_mut().zip(bytes.chunks(8)) {
                let mut word = [0; 8];
                word[..from.len()].copy_from_slice(from);
                *to = u64::from_ne_bytes(word);
            }
            assert_eq!(decode(&room), Some(address));
        }
        assert_eq!(decode(&[0; 32]), None);
    }
}
