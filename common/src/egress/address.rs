//! Which addresses are not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is of a range that is not the public internet: private, loopback, link-local (cloud metadata),
/// shared, reserved, multicast, documentation; in version 6 also every way to write a version 4 address.
pub fn forbidden(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => forbidden_v4(address),
        IpAddr::V6(address) => forbidden_v6(address),
    }
}

fn forbidden_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        // This network, private, loopback, multicast, reserved and broadcast.
        (0 | 10 | 127 | 224..=255, _, _) => true,
        // Shared by carriers.
        (100, 64..=127, _) => true,
        (169, 254, _) => true,
        (172, 16..=31, _) => true,
        // Protocol assignments, documentation, the old 6to4 relays.
        (192, 0, 0 | 2) | (192, 88, 99) => true,
        (192, 168, _) => true,
        // Benchmarks, documentation.
        (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => true,
        _ => false,
    }
}

fn forbidden_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let [a, b, c, d, e, f, g, h] = segments;
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        forbidden_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b, c, d, e, f) {
        // ::, ::1 and addresses of version 4 in the old compatible, the mapped and the translated form.
        (0, 0, 0, 0, 0, 0 | 0xffff) | (0, 0, 0, 0, 0xffff, 0) => (g == 0 && h <= 1) || embedded(g, h),
        // Translation (NAT64), public and local prefix.
        (0x64, 0xff9b, 0, 0, 0, 0) => embedded(g, h),
        (0x64, 0xff9b, ..) => true,
        // 6to4 holds a version 4 address behind its prefix.
        (0x2002, ..) => embedded(b, c),
        // Teredo, benchmarks, ORCHID and the rest of the protocol assignments; discard-only; documentation.
        (0x2001, 0..=0x1ff, ..) | (0x2001, 0xdb8, ..) | (0x100, 0, 0, 0, ..) | (0x3fff, 0..=0xfff, ..) => {
            true
        }
        // Only 2000::/3 is public; that leaves out unique local, link-local, site-local and multicast.
        _ => a & 0xe000 != 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_public_from_private() {
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "4000::1",
        ] {
            assert!(forbidden(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.169.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2606:4700::1111",
            "2a00:1450:4001::1",
        ] {
            assert!(!forbidden(public.parse().unwrap()), "{public}");
        }
    }
}
