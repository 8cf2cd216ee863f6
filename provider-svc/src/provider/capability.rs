//! The capabilities that a provider can be asked for.

use std::time::Duration;

/// What kind of thing a capability gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// A picture.
    Image,
    /// A film.
    Video,
    /// Sound.
    Audio,
    /// A 3D model.
    Model3d,
    /// Text.
    Text,
}

macro_rules! capabilities {
    ($($name:ident $text:literal $medium:ident,)*) => {
        /// What a provider can be asked for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Capability { $(#[doc = concat!("`", $text, "`.")] $name,)* }
        impl Capability {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
            /// Its name in requests and rows.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
            /// What it gives.
            #[must_use]
            pub const fn medium(self) -> Medium {
                match self { $(Self::$name => Medium::$medium,)* }
            }
        }
    };
}
capabilities! {
    TextToImage "text_to_image" Image,
    ImageToImage "image_to_image" Image,
    Inpainting "inpainting" Image,
    OutpaintImage "outpaint_image" Image,
    UpscaleImage "upscale_image" Image,
    RemoveBackground "remove_background" Image,
    RelightImage "relight_image" Image,
    SegmentImage "segment_image" Image,
    VectorizeImage "vectorize_image" Image,
    TextToVideo "text_to_video" Video,
    ImageToVideo "image_to_video" Video,
    ReferenceToVideo "reference_to_video" Video,
    VideoToVideo "video_to_video" Video,
    ExtendVideo "extend_video" Video,
    UpscaleVideo "upscale_video" Video,
    InterpolateVideo "interpolate_video" Video,
    OutpaintVideo "outpaint_video" Video,
    LipSync "lip_sync" Video,
    TrackObject "track_object" Video,
    VideoToAudio "video_to_audio" Audio,
    TextToSpeech "text_to_speech" Audio,
    TextToMusic "text_to_music" Audio,
    AudioToAudio "audio_to_audio" Audio,
    AutomaticSpeechRecognition "automatic_speech_recognition" Text,
    TextTo3d "text_to_3d" Model3d,
    ImageTo3d "image_to_3d" Model3d,
    RenderModel3d "render_model3d" Image,
    GenerateMessage "generate_message" Text,
    Embedding "embedding" Text,
}

impl Capability {
    /// The capability of a name; `None` when there is none.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|capability| capability.as_str() == name)
    }

    /// How long a call may take when the request does not say (providers specification 21).
    #[must_use]
    pub const fn deadline(self) -> Duration {
        let minutes = match self.medium() {
            Medium::Image | Medium::Text => 10,
            Medium::Audio => 15,
            Medium::Video => 20,
            Medium::Model3d => 60,
        };
        Duration::from_secs(minutes * 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        for capability in Capability::ALL {
            assert_eq!(Capability::parse(capability.as_str()), Some(*capability));
        }
        assert_eq!(Capability::parse("text_to_smell"), None);
    }
}
