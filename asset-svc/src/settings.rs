//! Settings of asset-svc: section `[assets]`, environment `ATELIER_ASSETS__…`.

use std::path::Path;

use atelier_common::component::BuildError;
use atelier_common::settings::{self, secret};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use url::Url;

/// Settings of asset-svc.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Database, `sqlite://PATH` or `postgres://…`. Default empty: the file `atelier.db` in the data folder.
    #[serde(with = "secret")]
    pub database_url: SecretString,
    /// Where the bytes are: `file:///folder`, `memory:///`, or an object store such as `s3://bucket/prefix`, whose keys come
    /// from the environment variables that its own tools use. Parts of an upload that a crash cut off are not listed by
    /// S3; a lifecycle rule of the bucket removes them. Default empty: the folder `blobs` in the data folder.
    pub store_url: String,
    /// Largest asset that is taken, in bytes. Default 2 GiB.
    pub max_asset_bytes: u64,
    /// Largest medium that a committed artifact carries itself, in bytes. Default 64 MiB, which is what a message holds.
    pub max_inline_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            database_url: SecretString::default(),
            store_url: String::new(),
            max_asset_bytes: 2 * 1024 * 1024 * 1024,
            max_inline_bytes: 64 * 1024 * 1024,
        }
    }
}

impl settings::Settings for Settings {
    const SECTION: &'static str = "assets";
}

/// Variables that tools of object stores read.
const STORE_VARIABLES: [&str; 10] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ALLOW_HTTP",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_ACCOUNT_KEY",
];

impl Settings {
    /// The database, with the default filled in.
    #[must_use]
    pub fn database(&self, data_dir: &Path) -> String {
        match self.database_url.expose_secret() {
            "" => format!("sqlite://{}", data_dir.join("atelier.db").display()),
            url => url.to_owned(),
        }
    }

    /// The store, with the default filled in.
    ///
    /// # Errors
    /// [`BuildError`] when it is no URL.
    pub fn store(&self, data_dir: &Path) -> Result<Url, BuildError> {
        if !self.store_url.is_empty() {
            return Url::parse(&self.store_url)
                .map_err(|error| BuildError::new("`assets.store_url` is not a URL", error));
        }
        let folder = std::path::absolute(data_dir.join("blobs"))
            .map_err(|error| BuildError::new("cannot find the data folder", error))?;
        Url::from_directory_path(folder).map_err(|()| BuildError::invalid("the data folder is not a path"))
    }

    /// What the environment says of the object store.
    #[must_use]
    pub fn store_options() -> Vec<(String, String)> {
        let found = |name: &&str| Some((name.to_ascii_lowercase(), settings::variable(name)?));
        STORE_VARIABLES.iter().filter_map(found).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_in_the_data_folder() {
        let settings = Settings::default();
        assert_eq!(settings.database(Path::new("/d/e")), "sqlite:///d/e/atelier.db");
        assert_eq!(
            settings.store(Path::new("/d/e")).unwrap().as_str(),
            "file:///d/e/blobs/"
        );
        let bad = Settings {
            store_url: "no url".into(),
            ..settings
        };
        assert!(bad.store(Path::new("/d")).is_err());
    }
}
