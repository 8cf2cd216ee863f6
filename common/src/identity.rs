//! The signed caller: who a request is from, said by the gateway and believed by the services.
//!
//! The metadata value is `base64url(JSON) "." base64url(HMAC-SHA256)`, the JSON being `{"u":user,"s":[scopes],"e":unix
//! seconds of expiry}`. The layer that checks it is `layers::identity`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use hmac::{Hmac, Mac};
use rand::Rng;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};
use tonic::{Request, Status};

use crate::clock::Clock;

/// The metadata key.
pub const IDENTITY: &str = "x-atelier-identity";

/// How long a signature holds.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// How long a signed value is handed out again; the rest of its lifetime is left to the receiver.
const REUSE: Duration = Duration::from_secs(5 * 60);
/// Signed values kept; beyond it the cache starts over.
const CACHED: usize = 4096;

/// Who a request is from, and what they may do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The user's id.
    pub user_id: String,
    /// What the user may do; services say what each scope means.
    pub scopes: Vec<String>,
}

impl Caller {
    /// The one user of a process without authentication: "1", with every scope.
    pub fn local() -> Self {
        Self {
            user_id: "1".to_owned(),
            scopes: vec!["*".to_owned()],
        }
    }

    /// Makes a caller with these scopes.
    pub fn new(user_id: impl Into<String>, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            user_id: user_id.into(),
            scopes: scopes.into_iter().map(Into::into).collect(),
        }
    }

    /// Whether the caller has a scope, by name or by `*`.
    pub fn may(&self, scope: &str) -> bool {
        self.scopes.iter().any(|own| own == "*" || own == scope)
    }
}

/// Why an identity is not believed. Tells nothing that helps to forge one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// There is none.
    #[error("identity is missing")]
    Missing,
    /// It is not of this form, or its signature is wrong.
    #[error("identity is not valid")]
    Invalid,
    /// It is too old.
    #[error("identity has expired")]
    Expired,
}

impl From<IdentityError> for Status {
    fn from(error: IdentityError) -> Self {
        Status::unauthenticated(error.to_string())
    }
}

#[derive(Serialize, Deserialize)]
struct Claims {
    #[serde(rename = "u")]
    user_id: String,
    #[serde(rename = "s")]
    scopes: Vec<String>,
    #[serde(rename = "e")]
    expires_at: i64,
}

/// Signs and verifies callers with one key. Clones share the key and the cache.
#[derive(Clone)]
pub struct Signer {
    inner: Arc<Inner>,
}

struct Inner {
    keyed: Hmac<Sha256>,
    clock: Clock,
    signed: Mutex<HashMap<Caller, Signed>>,
}

struct Signed {
    value: AsciiMetadataValue,
    reuse_until: DateTime<Utc>,
}

impl Signer {
    /// Signs with a secret that every service of the deployment knows.
    pub fn new(secret: SecretString) -> Self {
        Self::keyed(secret.expose_secret().as_bytes(), Clock::system())
    }

    /// Signs with a random key: right for a process that holds all services, and for tests.
    pub fn random() -> Self {
        Self::keyed(&rand::rng().random::<[u8; 32]>(), Clock::system())
    }

    /// The same with a clock that a test can set.
    pub fn with_clock(secret: SecretString, clock: Clock) -> Self {
        Self::keyed(secret.expose_secret().as_bytes(), clock)
    }

    fn keyed(key: &[u8], clock: Clock) -> Self {
        // The key is hashed to the block's size first, so that no length can be refused.
        let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
        let digest = <Sha256 as sha2::Digest>::digest(key);
        for (to, from) in block.iter_mut().zip(digest) {
            *to = from;
        }
        let inner = Inner {
            keyed: <Hmac<Sha256> as Mac>::new(&block),
            clock,
            signed: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Signs a caller into a request's metadata. Signed values are reused for five minutes, so this costs a look-up.
    pub fn attach<T>(&self, mut request: Request<T>, caller: &Caller) -> Request<T> {
        if let Some(value) = self.sign(caller) {
            request.metadata_mut().insert(IDENTITY, value);
        }
        request
    }

    /// A request for `message` from `caller`.
    pub fn request<T>(&self, message: T, caller: &Caller) -> Request<T> {
        self.attach(Request::new(message), caller)
    }

    /// The signed metadata value. `None` never happens for values made here; base64 is always valid metadata.
    fn sign(&self, caller: &Caller) -> Option<AsciiMetadataValue> {
        let now = self.inner.clock.now();
        let mut cache = self.inner.signed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(signed) = cache.get(caller)
            && now < signed.reuse_until
            && now + LIFETIME >= signed.reuse_until
        {
            return Some(signed.value.clone());
        }
        let claims = Claims {
            user_id: caller.user_id.clone(),
            scopes: caller.scopes.clone(),
            expires_at: (now + LIFETIME).timestamp(),
        };
        let body = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims).ok()?);
        let signature = self
            .inner
            .keyed
            .clone()
            .chain_update(&body)
            .finalize()
            .into_bytes();
        let text = format!("{body}.{}", URL_SAFE_NO_PAD.encode(signature));
        let value = AsciiMetadataValue::try_from(text).ok()?;
        if cache.len() >= CACHED {
            cache.clear();
        }
        cache.insert(
            caller.clone(),
            Signed {
                value: value.clone(),
                reuse_until: now + REUSE,
            },
        );
        Some(value)
    }

    /// Reads and checks the caller in a request's metadata.
    ///
    /// # Errors
    /// [`IdentityError`], by what is wrong.
    pub fn verify(&self, metadata: &MetadataMap) -> Result<Caller, IdentityError> {
        let value = metadata.get(IDENTITY).ok_or(IdentityError::Missing)?;
        self.verify_text(value.to_str().map_err(|_| IdentityError::Invalid)?)
    }

    /// Checks the value itself.
    ///
    /// # Errors
    /// [`IdentityError::Invalid`] and [`IdentityError::Expired`].
    pub fn verify_text(&self, text: &str) -> Result<Caller, IdentityError> {
        let (body, signature) = text.split_once('.').ok_or(IdentityError::Invalid)?;
        let signature = URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| IdentityError::Invalid)?;
        // Compared in constant time, before anything of the body is looked at.
        self.inner
            .keyed
            .clone()
            .chain_update(body)
            .verify_slice(&signature)
            .map_err(|_| IdentityError::Invalid)?;
        let json = URL_SAFE_NO_PAD.decode(body).map_err(|_| IdentityError::Invalid)?;
        let claims: Claims = serde_json::from_slice(&json).map_err(|_| IdentityError::Invalid)?;
        if self.inner.clock.now().timestamp() >= claims.expires_at {
            return Err(IdentityError::Expired);
        }
        Ok(Caller {
            user_id: claims.user_id,
            scopes: claims.scopes,
        })
    }
}

/// The verified caller of a request that came through the server's layers.
///
/// # Errors
/// UNAUTHENTICATED when the request has none.
pub fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    request
        .extensions()
        .get::<Caller>()
        .cloned()
        .ok_or_else(|| IdentityError::Missing.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(clock: &Clock) -> Signer {
        Signer::with_clock("a secret".into(), clock.clone())
    }

    #[test]
    fn what_is_signed_verifies_until_it_expires() {
        let clock = Clock::manual(Utc::now());
        let signer = signer(&clock);
        let caller = Caller::new("42", ["run", "read"]);
        let request = signer.request((), &caller);
        assert_eq!(signer.verify(request.metadata()).unwrap(), caller);
        clock.advance(LIFETIME + Duration::from_secs(1));
        assert_eq!(signer.verify(request.metadata()), Err(IdentityError::Expired));
        let again = signer.request((), &caller);
        assert_eq!(signer.verify(again.metadata()).unwrap(), caller);
    }

    #[test]
    fn signatures_are_reused_for_a_while() {
        let clock = Clock::manual(Utc::now());
        let signer = signer(&clock);
        let value = |caller: &Caller| signer.sign(caller).unwrap();
        let (one, two) = (Caller::new("1", ["a"]), Caller::new("2", ["a"]));
        let first = value(&one);
        assert_ne!(first, value(&two));
        clock.advance(Duration::from_secs(60));
        assert_eq!(first, value(&one));
        clock.advance(REUSE);
        assert_ne!(first, value(&one));
    }

    #[test]
    fn tampering_and_other_keys_are_refused() {
        let clock = Clock::system();
        let signer = signer(&clock);
        let text = signer.sign(&Caller::new("42", ["run"])).unwrap();
        let text = text.to_str().unwrap();
        let (body, signature) = text.split_once('.').unwrap();
        let forged = URL_SAFE_NO_PAD.encode(br#"{"u":"1","s":["*"],"e":99999999999}"#);
        for bad in [
            format!("{forged}.{signature}"),
            format!("{body}.{}", &signature[1..]),
            format!("{body}."),
            body.to_owned(),
            String::new(),
        ] {
            assert_eq!(signer.verify_text(&bad), Err(IdentityError::Invalid), "{bad}");
        }
        assert_eq!(Signer::random().verify_text(text), Err(IdentityError::Invalid));
        assert_eq!(signer.verify(&MetadataMap::new()), Err(IdentityError::Missing));
        assert_eq!(
            caller(&Request::new(())).unwrap_err().code(),
            tonic::Code::Unauthenticated
        );
    }
}
