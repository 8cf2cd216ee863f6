//! A checked request: everything that is decided before a row is opened (generations specification 3.1, K1 and K2).

use std::sync::Arc;
use std::time::Duration;

use atelier_common::identity::Caller;
use atelier_proto::common::v1::Origin;
use atelier_proto::ids::GenerationId;
use atelier_proto::provider::v1::RunGenerationRequest;
use atelier_proto::tracker::v1::{Charge, Generation, OpenGenerationRequest};
use atelier_proto::value::{Map, Value};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::pricing::{Catalog, Quantities, Quote, Unpriced};
use crate::provider::{Capability, Params, Provider};
use crate::seam::directory::Directory;
use crate::seam::fingerprint::fingerprint;
use crate::seam::{origin, receipt, redact};

/// Longest deadline that a request may ask for.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a call that is taken up after its time may still take.
const LAST_LOOK: Duration = Duration::from_mins(1);
/// Longest name of an asset, in characters.
const MAX_NAME: usize = 200;

/// A request that can be carried out.
#[derive(Clone)]
pub struct Plan {
    /// Whose request it is.
    pub caller: Caller,
    /// Id of the row.
    pub id: GenerationId,
    /// Whether the id was made for this call, so that a row of this id is of this call.
    pub id_is_new: bool,
    /// Who carries it out.
    pub provider: Arc<dyn Provider>,
    /// The provider's own name of the model.
    pub model: String,
    /// What is asked.
    pub capability: Capability,
    /// The parameters as they came.
    pub params: Map,
    /// The parameters without bytes and secrets.
    pub redacted: Map,
    /// Who asked.
    pub origin: Origin,
    /// Unique per user.
    pub idempotency_key: Option<String>,
    /// Equal for equal requests.
    pub fingerprint: String,
    /// What is counted, as far as the request says.
    pub quantities: Quantities,
    /// What the catalog says before the call.
    pub estimate: Result<Quote, Unpriced>,
    /// Whether outputs are stored.
    pub persist: bool,
    /// Name of the asset.
    pub name: Option<String>,
    /// Whether the caller goes on without waiting.
    pub background: bool,
    /// Whether the call ends when its caller is gone.
    pub cancel_on_disconnect: bool,
    /// How long the call may take.
    pub deadline: Duration,
    /// The row inside of whose call this one is made.
    pub parent: Option<String>,
}

impl Plan {
    /// Checks a request.
    ///
    /// # Errors
    /// Names the field that is wrong; nothing was sent or stored.
    pub fn new(
        caller: Caller,
        request: RunGenerationRequest,
        directory: &Directory,
        catalog: &Catalog,
    ) -> Result<Self, Error> {
        let RunGenerationRequest {
            provider,
            model,
            capability,
            params,
            origin,
            generation_id,
            idempotency_key,
            persist,
            background,
            cancel_on_disconnect,
            deadline,
        } = request;
        let capability = Capability::parse(&capability).ok_or_else(|| Error::UnknownCapability {
            capability,
            who: "no provider".to_owned(),
        })?;
        let (provider, model) = directory.choose(&provider, model, capability)?;
        let model = resolve(provider.as_ref(), model, capability)?;
        let params = params.unwrap_or_default().try_into();
        let params: Map =
            params.map_err(|wrong: atelier_proto::value::ValueError| invalid("params", wrong.to_string()))?;
        check(capability, Params(&params))?;
        let deadline = match deadline {
            None => capability.deadline(),
            Some(given) => Duration::try_from(given)
                .ok()
                .filter(|given| !given.is_zero() && *given <= LONGEST)
                .ok_or_else(|| invalid("deadline", "must be above zero and at most a day"))?,
        };
        let generation_id = generation_id.filter(|id| !id.is_empty());
        let id_is_new = generation_id.is_none();
        let id = match generation_id {
            None => GenerationId::new(),
            Some(id) => id
                .parse()
                .map_err(|_| invalid("generation_id", "must be a UUID"))?,
        };
        if idempotency_key.as_ref().is_some_and(|key| key.len() > 512) {
            return Err(invalid("idempotency_key", "must be at most 512 bytes"));
        }
        let name = persist
            .as_ref()
            .and_then(|persist| persist.name.clone())
            .filter(|name| !name.is_empty());
        if name.as_ref().is_some_and(|name| name.chars().count() > MAX_NAME) {
            return Err(invalid("persist.name", "must be at most 200 characters"));
        }
        let origin = origin::complete(origin);
        let quantities = Quantities::of_request(capability, Params(&params));
        Ok(Self {
            id,
            id_is_new,
            fingerprint: fingerprint(provider.id(), &model, capability.as_str(), &params),
            estimate: catalog.price(provider.id(), &model, &quantities),
            redacted: redact::redact(&params),
            idempotency_key: origin::idempotency_key(idempotency_key, &origin),
            persist: persist.is_some(),
            caller,
            provider,
            model,
            capability,
            params,
            origin,
            quantities,
            name,
            background,
            cancel_on_disconnect,
            deadline,
            parent: receipt::current_generation(),
        })
    }

    /// The row to open.
    #[must_use]
    pub fn open_request(&self) -> OpenGenerationRequest {
        OpenGenerationRequest {
            generation_id: self.id.to_string(),
            provider: self.provider.id().to_owned(),
            model: self.model.clone(),
            capability: self.capability.as_str().to_owned(),
            origin: Some(self.origin.clone()),
            parameters: Some((&self.redacted).into()),
            idempotency_key: self.idempotency_key.clone(),
            input_fingerprint: self.fingerprint.clone(),
            estimate: self.estimate.as_ref().ok().map(charge),
            unpriced_reason: self.estimate.as_ref().err().map(ToString::to_string),
            background: self.background,
            instance_id: String::new(),
            plan: Some(Left::of(self).text()),
            parent_generation_id: self.parent.clone(),
        }
    }

    /// The rest of a call that another process began. Its parameters are the redacted ones: nothing is submitted again.
    /// `age` is how long ago it was submitted.
    #[must_use]
    pub fn resumed(
        caller: Caller,
        generation: &Generation,
        provider: Arc<dyn Provider>,
        left: Left,
        age: Duration,
        catalog: &Catalog,
    ) -> Option<Self> {
        let redacted: Map = generation
            .parameters
            .clone()
            .unwrap_or_default()
            .try_into()
            .ok()?;
        let Left {
            persist,
            name,
            deadline,
            quantities,
        } = left;
        Some(Self {
            id: generation.generation_id.parse().ok()?,
            id_is_new: false,
            fingerprint: String::new(),
            estimate: catalog.price(provider.id(), &generation.model, &quantities),
            params: redacted.clone(),
            redacted,
            idempotency_key: None,
            persist,
            caller,
            provider,
            model: generation.model.clone(),
            capability: Capability::parse(&generation.capability)?,
            origin: generation.origin.clone().unwrap_or_default(),
            quantities,
            name,
            parent: None,
            background: true,
            cancel_on_disconnect: false,
            // A job that was done long ago is worth one look.
            deadline: deadline.saturating_sub(age).max(LAST_LOOK),
        })
    }
}

/// What another process needs to finish a call, beside its row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    persist: bool,
    #[serde(default)]
    name: Option<String>,
    #[serde(with = "humantime_serde")]
    deadline: Duration,
    quantities: Quantities,
}

impl Left {
    fn of(plan: &Plan) -> Self {
        Self {
            persist: plan.persist,
            name: plan.name.clone(),
            deadline: plan.deadline,
            quantities: plan.quantities.clone(),
        }
    }

    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what a process left; `None` when it cannot be read.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// A price as the ledger has it.
#[must_use]
pub fn charge(quote: &Quote) -> Charge {
    Charge {
        cost: Some((&quote.cost).into()),
        billing_unit: Some(quote.billing_unit.to_owned()),
        quantity: Some(quote.quantity.normalize().to_string()),
        unit_price: quote.unit_price.map(|price| price.normalize().to_string()),
        breakdown: Some(quote.breakdown.clone()),
    }
}

fn invalid(field: &'static str, wrong: impl Into<String>) -> Error {
    Error::Invalid {
        field,
        wrong: wrong.into(),
    }
}

fn resolve(provider: &dyn Provider, model: String, capability: Capability) -> Result<String, Error> {
    let models = provider.models();
    let able = |model: &crate::provider::Model| model.capabilities.contains(&capability);
    let cannot = |who: String| Error::UnknownCapability {
        capability: capability.as_str().to_owned(),
        who,
    };
    let Some(default) = models.iter().find(|model| able(model)) else {
        return Err(cannot(provider.id().to_owned()));
    };
    if model.is_empty() {
        return Ok(default.id.clone());
    }
    match models.iter().find(|known| known.id == model) {
        Some(known) if able(known) => Ok(model),
        Some(known) if !provider.takes_any_model() => Err(cannot(format!("{}/{}", provider.id(), known.id))),
        None if !provider.takes_any_model() => Err(Error::UnknownModel {
            provider: provider.id().to_owned(),
            model,
        }),
        Some(_) | None => Ok(model),
    }
}

/// Whether there is no text in a text, or in a list of them.
fn nothing(value: &Value) -> bool {
    match value {
        Value::Str(text) => text.is_empty(),
        Value::List(texts) => texts.is_empty() || texts.iter().any(|text| text.as_str().is_none()),
        _ => true,
    }
}

/// What every provider needs for a capability.
fn check(capability: Capability, params: Params<'_>) -> Result<(), Error> {
    match capability {
        Capability::TextToImage if params.text("prompt").is_none() => {
            Err(invalid("params.prompt", "must not be empty"))
        }
        Capability::TextToSpeech if params.first_text(&["text", "input", "prompt"]).is_none() => {
            Err(invalid("params.text", "must not be empty"))
        }
        Capability::TextToVideo | Capability::TextToMusic | Capability::TextTo3d
            if params.first_text(&["prompt", "text", "lyrics"]).is_none() =>
        {
            Err(invalid("params.prompt", "must not be empty"))
        }
        Capability::Embedding if params.0.get("input").is_none_or(nothing) => {
            Err(invalid("params.input", "must be a text or a list of texts"))
        }
        Capability::GenerateMessage
            if params.text("prompt").is_none()
                && params
                    .0
                    .get("messages")
                    .and_then(|messages| messages.as_list())
                    .is_none_or(<[_]>::is_empty) =>
        {
            Err(invalid("params.messages", "must not be empty without a prompt"))
        }
        _ => Ok(()),
    }
}
