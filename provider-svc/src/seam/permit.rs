//! The proof that a provider is called from the seam.

/// Proof that the caller is the seam. Methods of a provider that may cost money ask for one, and nothing outside
/// `seam` can make it, so a call around the ledger does not compile (generations specification 14).
///
/// ```compile_fail,E0423
/// let permit = atelier_provider::provider::SeamPermit(());
/// ```
///
/// ```compile_fail,E0624
/// let permit = atelier_provider::provider::SeamPermit::grant();
/// ```
#[derive(Debug)]
pub struct SeamPermit(());

impl SeamPermit {
    /// Grants the permit; the seam does so after the row is open.
    pub(in crate::seam) const fn grant() -> Self {
        Self(())
    }
}
