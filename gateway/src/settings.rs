//! Settings of the gateway, section `gateway`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How the gateway listens, and what it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Address to listen on. Only loopback is possible without authentication. Default 127.0.0.1:7777.
    pub listen: SocketAddr,
    /// Largest body of a request, in bytes. Default 100 MiB.
    pub max_body_bytes: usize,
    /// Largest body that carries a graph, in bytes. Default 32 MiB.
    pub max_graph_bytes: usize,
    /// How long an answer of another service is waited for. Default 30 s.
    #[serde(with = "humantime_serde")]
    pub call_timeout: Duration,
    /// How long open requests and sockets may go on when the process stops. Default 20 s.
    #[serde(with = "humantime_serde")]
    pub drain: Duration,
    /// Limits of the socket.
    pub ws: Ws,
    /// What pages of other origins may do.
    pub cors: Cors,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7777),
            max_body_bytes: 100 * 1024 * 1024,
            max_graph_bytes: 32 * 1024 * 1024,
            call_timeout: Duration::from_secs(30),
            drain: Duration::from_secs(20),
            ws: Ws::default(),
            cors: Cors::default(),
        }
    }
}

impl atelier_common::settings::Settings for Settings {
    const SECTION: &'static str = "gateway";
}

/// Limits of one socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ws {
    /// Largest inbound message, in bytes. Default 48 MiB, which fits one message between services.
    pub max_message_bytes: usize,
    /// Inbound messages within a second before the socket is closed with 1008. Default 200.
    pub rate: usize,
    /// Outbound frames that wait for a client. Default 4096.
    pub queue_frames: usize,
    /// Bytes of outbound frames that wait for a client. Default 8 MiB.
    pub queue_bytes: usize,
    /// How long a full queue is waited for before the socket is closed with 1013. Default 10 s.
    #[serde(with = "humantime_serde")]
    pub slow_limit: Duration,
    /// Pause between pings of the application. Default 25 s.
    #[serde(with = "humantime_serde")]
    pub ping: Duration,
    /// Pause between pings of the protocol; a peer that misses two is gone. Default 20 s.
    #[serde(with = "humantime_serde")]
    pub protocol_ping: Duration,
}

impl Default for Ws {
    fn default() -> Self {
        Self {
            max_message_bytes: 48 * 1024 * 1024,
            rate: 200,
            queue_frames: 4096,
            queue_bytes: 8 * 1024 * 1024,
            slow_limit: Duration::from_secs(10),
            ping: Duration::from_secs(25),
            protocol_ping: Duration::from_secs(20),
        }
    }
}

/// What pages of other origins may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cors {
    /// Origins besides loopback ones that may call, for instance `https://studio.example`. Default none.
    pub origins: Vec<String>,
    /// Host names besides loopback ones that a request may name, for instance behind a proxy. Default none.
    pub hosts: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_refused_and_durations_are_text() {
        let settings: Settings = serde_json::from_str(r#"{"drain":"5s","ws":{"rate":7}}"#).expect("settings");
        assert_eq!((settings.drain, settings.ws.rate), (Duration::from_secs(5), 7));
        assert!(serde_json::from_str::<Settings>(r#"{"listne":"127.0.0.1:1"}"#).is_err());
    }
}
