//! A running service with a database and a store of its own, and the calls that tests make.

use std::path::PathBuf;
use std::sync::Arc;

use atelier_asset::blobs::Blobs;
use atelier_asset::{Assets, Settings};
use atelier_common::channel::{self, Transport};
use atelier_common::component::{Component, Deps};
use atelier_common::identity::{Caller, Signer};
use atelier_common::testkit::TestDb;
use atelier_proto::MAX_MESSAGE_BYTES;
use atelier_proto::asset::v1::asset_service_client::AssetServiceClient;
use atelier_proto::asset::v1::download_asset_response::Part as DownloadPart;
use atelier_proto::asset::v1::upload_asset_request::Part as UploadPart;
use atelier_proto::asset::v1::{
    Asset, CommitGenerationRequest, CommitGenerationResponse, DownloadAssetRequest, DownloadHeader,
    GetAssetRequest, ListAssetsRequest, ListAssetsResponse, UploadAssetRequest, UploadAssetResponse,
    UploadHeader,
};
use atelier_proto::value::{self, BytesForm, Map, Value};
use futures_util::StreamExt;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tonic::{Request, Status};
use url::Url;

use crate::store::{Watch, Watched};

pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01";
pub const MAX_ASSET_BYTES: u64 = 64 * 1024 * 1024;

pub type Client = AssetServiceClient<Transport>;

/// Where the bytes are.
#[derive(Debug, Clone)]
pub enum Place {
    Folder,
    Store(&'static str, Arc<dyn ObjectStore>),
}

pub struct World {
    pub name: String,
    pub watch: Arc<Watch>,
    pub client: Client,
    pub deps: Deps,
    pub place: Place,
    dir: TempDir,
    db: TestDb,
}

/// Every engine and every store. They know nothing of each other, so not every pair is tried.
pub async fn worlds() -> Vec<World> {
    let memory = || Place::Store("memory", Arc::new(InMemory::new()));
    let mut worlds = vec![World::new(TestDb::sqlite().await, Place::Folder).await];
    worlds.push(match TestDb::postgres().await {
        Some(db) => World::new(db, memory()).await,
        None => World::new(TestDb::sqlite().await, memory()).await,
    });
    if let Some(store) = crate::s3::store() {
        worlds.push(World::new(TestDb::sqlite().await, Place::Store("s3", store)).await);
    }
    worlds
}

impl World {
    async fn new(db: TestDb, place: Place) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut deps = Deps::new(dir.path(), Signer::random());
        deps.sole_process = true;
        let watch = Watch::new();
        let name = format!(
            "{} and {}",
            db.engine(),
            match &place {
                Place::Folder => "folder",
                Place::Store(name, _) => name,
            }
        );
        let client = start(&db, &deps, &place, &watch).await;
        Self {
            name,
            watch,
            client,
            deps,
            place,
            dir,
            db,
        }
    }

    /// The same database and store in a process started again.
    pub async fn restart(&mut self) {
        self.deps.tasks.stop();
        self.deps = self.deps.restarted();
        self.client = start(&self.db, &self.deps, &self.place, &self.watch).await;
    }

    pub fn folder(&self) -> PathBuf {
        self.dir.path().join("blobs")
    }

    /// A request of the local user.
    pub fn by<T>(&self, user: &str, message: T) -> Request<T> {
        self.deps.signer.request(message, &Caller::new(user, ["*"]))
    }

    /// Names of all objects in the store, those without a name yet included.
    pub async fn objects(&self) -> Vec<String> {
        let mut names: Vec<String> = match &self.place {
            Place::Folder => files(&self.folder(), &self.folder()),
            Place::Store(_, store) => {
                store
                    .list(None)
                    .map(|meta| meta.unwrap().location.to_string())
                    .collect()
                    .await
            }
        };
        names.sort_unstable();
        names
    }

    pub async fn upload_as(
        &self,
        user: &str,
        header: UploadHeader,
        bytes: &[u8],
    ) -> Result<UploadAssetResponse, Status> {
        let mut parts = vec![UploadAssetRequest {
            part: Some(UploadPart::Header(header)),
        }];
        let chunks = bytes.chunks(atelier_proto::CHUNK_BYTES);
        parts.extend(chunks.map(|chunk| piece(chunk.to_vec())));
        let request = self.by(user, futures_util::stream::iter(parts));
        Ok(self.client.clone().upload_asset(request).await?.into_inner())
    }

    pub async fn upload(&self, name: &str, bytes: &[u8]) -> Asset {
        let header = UploadHeader {
            name: Some(name.to_owned()),
            ..UploadHeader::default()
        };
        self.upload_as("1", header, bytes).await.unwrap().asset.unwrap()
    }

    pub async fn get_as(&self, user: &str, asset_id: &str) -> Result<Asset, Status> {
        let request = self.by(
            user,
            GetAssetRequest {
                asset_id: asset_id.to_owned(),
            },
        );
        Ok(self
            .client
            .clone()
            .get_asset(request)
            .await?
            .into_inner()
            .asset
            .unwrap())
    }

    pub async fn get(&self, asset_id: &str) -> Asset {
        self.get_as("1", asset_id).await.unwrap()
    }

    pub async fn list(&self, request: ListAssetsRequest) -> Result<ListAssetsResponse, Status> {
        Ok(self
            .client
            .clone()
            .list_assets(self.by("1", request))
            .await?
            .into_inner())
    }

    /// All assets of the local user, newest first.
    pub async fn all(&self) -> Vec<Asset> {
        self.list(ListAssetsRequest {
            page_size: 500,
            ..ListAssetsRequest::default()
        })
        .await
        .unwrap()
        .assets
    }

    pub async fn download_as(
        &self,
        user: &str,
        asset_id: &str,
        offset: Option<i64>,
        length: Option<i64>,
    ) -> Result<(DownloadHeader, Vec<u8>), Status> {
        let request = DownloadAssetRequest {
            asset_id: asset_id.to_owned(),
            offset,
            length,
        };
        let mut parts = self
            .client
            .clone()
            .download_asset(self.by(user, request))
            .await?
            .into_inner();
        let Some(DownloadPart::Header(header)) = parts.message().await?.and_then(|first| first.part) else {
            panic!("the header comes first");
        };
        let mut bytes = Vec::new();
        while let Some(message) = parts.message().await? {
            let Some(DownloadPart::Chunk(chunk)) = message.part else {
                panic!("one header only")
            };
            assert!(!chunk.is_empty() && chunk.len() <= atelier_proto::CHUNK_BYTES);
            bytes.extend_from_slice(&chunk);
        }
        assert_eq!(header.length, i64::try_from(bytes.len()).unwrap());
        Ok((header, bytes))
    }

    pub async fn bytes(&self, asset_id: &str) -> Vec<u8> {
        self.download_as("1", asset_id, None, None).await.unwrap().1
    }

    pub async fn try_commit(&self, artifact: &Artifact) -> Result<Committed, Status> {
        let request = self.by(artifact.user, artifact.request());
        let CommitGenerationResponse { outputs, assets } =
            self.client.clone().commit_generation(request).await?.into_inner();
        let outputs = Map::try_from(outputs.unwrap()).unwrap();
        Ok(Committed {
            outputs: value::to_json(&Value::map(outputs), BytesForm::Tagged),
            assets,
        })
    }

    pub async fn commit(&self, artifact: &Artifact) -> Committed {
        self.try_commit(artifact).await.unwrap()
    }
}

async fn start(db: &TestDb, deps: &Deps, place: &Place, watch: &Arc<Watch>) -> Client {
    let settings = Settings {
        database_url: db.url().into(),
        max_asset_bytes: MAX_ASSET_BYTES,
        ..Settings::default()
    };
    let blobs = match place {
        Place::Folder => {
            let url = Url::from_directory_path(deps.data_dir.join("blobs")).unwrap();
            Blobs::open(&url, &[], deps.tasks.clone()).unwrap()
        }
        Place::Store(_, store) => Blobs::with_store(Arc::clone(store), deps.tasks.clone()),
    };
    let blobs = blobs.wrapped(|inner| {
        Arc::new(Watched {
            inner,
            watch: Arc::clone(watch),
        })
    });
    let assets = Assets::with_blobs(&settings, deps, blobs).await.unwrap();
    AssetServiceClient::new(channel::local(assets.routes(), &deps.signer))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

fn files(root: &std::path::Path, folder: &std::path::Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(files(root, &path));
        } else {
            names.push(path.strip_prefix(root).unwrap().display().to_string());
        }
    }
    names
}

pub fn piece(bytes: Vec<u8>) -> UploadAssetRequest {
    UploadAssetRequest {
        part: Some(UploadPart::Chunk(bytes.into())),
    }
}

/// An artifact that is committed.
#[derive(Debug, Clone)]
pub struct Artifact {
    pub user: &'static str,
    pub job_id: String,
    pub node_id: String,
    pub index: i64,
    pub outputs: Map,
    pub properties: Json,
    pub generation_ids: Vec<String>,
    pub text_handle: String,
}

impl Artifact {
    /// The first one of the node `node-0001-x` in the run `job-1`.
    pub fn of(outputs: Json) -> Self {
        Self {
            user: "1",
            job_id: "job-1".to_owned(),
            node_id: "node-0001-x".to_owned(),
            index: 0,
            outputs: value::map_from_json(outputs).unwrap(),
            properties: json!({}),
            generation_ids: Vec::new(),
            text_handle: String::new(),
        }
    }

    pub fn at(self, index: i64) -> Self {
        Self { index, ..self }
    }

    pub fn text(self, text_handle: &str) -> Self {
        Self {
            text_handle: text_handle.to_owned(),
            ..self
        }
    }

    pub fn by(self, user: &'static str) -> Self {
        Self { user, ..self }
    }

    pub fn generations(self, ids: &[&str]) -> Self {
        Self {
            generation_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            ..self
        }
    }

    fn request(&self) -> CommitGenerationRequest {
        CommitGenerationRequest {
            job_id: self.job_id.clone(),
            node_id: self.node_id.clone(),
            node_type: "test.Node".to_owned(),
            index: self.index,
            workflow_id: Some("flow-1".to_owned()),
            outputs: Some((&self.outputs).into()),
            properties: Some((&value::map_from_json(self.properties.clone()).unwrap()).into()),
            generation_ids: self.generation_ids.clone(),
            text_handle: self.text_handle.clone(),
        }
    }
}

pub struct Committed {
    pub outputs: Json,
    pub assets: Vec<Asset>,
}

impl Committed {
    pub fn ids(&self) -> Vec<&str> {
        self.assets.iter().map(|asset| asset.asset_id.as_str()).collect()
    }

    pub fn slots(&self) -> Vec<(&str, i64, i32)> {
        let slots = self.assets.iter().map(|asset| asset.slot.as_ref().unwrap());
        slots
            .map(|slot| (slot.handle.as_str(), slot.index, slot.element))
            .collect()
    }
}

/// An image with bytes of its own.
pub fn image(n: u8) -> Json {
    let bytes = [PNG, &[n]].concat();
    json!({"type": "image", "data": bytes})
}

pub fn metadata(asset: &Asset) -> Json {
    let map = Map::try_from(asset.metadata.clone().unwrap()).unwrap();
    value::to_json(&Value::map(map), BytesForm::Tagged)
}

pub fn reason(status: &Status) -> String {
    atelier_proto::reason::reason_of(status)
}
