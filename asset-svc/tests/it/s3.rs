//! A server that speaks S3, one for all tests of this process; none when the machine has none.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use atelier_asset::blobs::Blobs;
use atelier_common::tasks::Tasks;
use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use url::Url;

/// How long it may take to start: it is a Python program, and the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server. Its shell ends it when this process has gone, whose end closes the pipe that the shell reads.
struct Server {
    address: SocketAddr,
    _shell: Child,
}

static SERVER: OnceLock<Option<Server>> = OnceLock::new();

fn server() -> Option<SocketAddr> {
    SERVER.get_or_init(start).as_ref().map(|server| server.address)
}

fn start() -> Option<Server> {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let known = Command::new("sh")
        .args(["-c", "command -v moto_server"])
        .output()
        .unwrap();
    if !known.status.success() {
        eprintln!("no moto_server: the tests do without S3");
        return None;
    }
    let script = format!(
        "moto_server -H 127.0.0.1 -p {} >/dev/null 2>&1 & server=$!; read -r _; kill $server",
        address.port()
    );
    let shell = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < deadline, "moto_server does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(Server {
        address,
        _shell: shell,
    })
}

/// A new bucket, and the address of its server.
fn bucket() -> Option<(SocketAddr, String)> {
    let address = server()?;
    let name = format!("b{}", uuid::Uuid::now_v7().simple());
    let mut socket = TcpStream::connect(address).unwrap();
    let request =
        format!("PUT /{name} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Some((address, name))
}

/// A store in a bucket of its own.
pub fn store() -> Option<Arc<dyn ObjectStore>> {
    let (address, bucket) = bucket()?;
    atelier_common::egress::install_crypto();
    let store = AmazonS3Builder::new()
        .with_endpoint(format!("http://{address}"))
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_access_key_id("test")
        .with_secret_access_key("test")
        .with_bucket_name(bucket)
        .build()
        .unwrap();
    Some(Arc::new(store))
}

#[tokio::test]
async fn a_bucket_is_named_by_an_address_and_the_usual_variables() {
    let Some((address, bucket)) = bucket() else { return };
    let options: Vec<(String, String)> = [
        ("aws_endpoint_url", format!("http://{address}")),
        ("aws_allow_http", "true".to_owned()),
        ("aws_region", "us-east-1".to_owned()),
        ("aws_access_key_id", "test".to_owned()),
        ("aws_secret_access_key", "test".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let url = Url::parse(&format!("s3://{bucket}/some/folder")).unwrap();
    let blobs = Blobs::open(&url, &options, Tasks::new()).unwrap();
    blobs.check().await.unwrap();
    // More than one part, so that it arrives under a temporary name and is given its own.
    let bytes: Vec<u8> = (0..20_000_000_u32)
        .map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[2])
        .collect();
    let mut writer = blobs.writer(1 << 30);
    for piece in bytes.chunks(1_000_000) {
        writer.write(piece).await.unwrap();
    }
    let blob = writer.finish().await.unwrap();
    assert_eq!(blob.size, 20_000_000);
    use futures_util::TryStreamExt;
    let read = blobs.read(&blob.object, 9_000_000..9_000_100).await.unwrap();
    let read: Vec<u8> = read.try_collect::<Vec<_>>().await.unwrap().concat();
    assert_eq!(read, bytes[9_000_000..9_000_100]);
    assert_eq!(
        blobs.remove_leftovers(None).await.unwrap(),
        0,
        "nothing is left under a temporary name"
    );
    let missing = blobs.read("aa/none.bin", 0..1).await;
    assert!(missing.is_err());
}
