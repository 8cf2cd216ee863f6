//! Which capability a type asks for, by its name, its outputs, and the media that it was given.

use crate::node::NodeMeta;

/// Media that an invocation was given.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Given {
    pub image: bool,
    pub mask: bool,
    pub audio: bool,
    pub video: bool,
}

/// The capability. Where nothing speaks for another one, a language model is asked.
pub(super) fn capability(meta: &NodeMeta, given: Given) -> &'static str {
    let name = meta.node_type.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["embedding", "featureextraction"]) {
        return "embedding";
    }
    let output = meta
        .outputs
        .first()
        .map(|output| output.ty.as_str())
        .unwrap_or_default();
    match output.trim_start_matches("list[").trim_end_matches(']') {
        "image" => match given {
            Given {
                image: true,
                mask: true,
                ..
            } => "inpainting",
            Given { image: true, .. } if has(&["upscale", "esrgan", "superresolution"]) => "upscale_image",
            Given { image: true, .. } if has(&["background", "rembg"]) => "remove_background",
            Given { image: true, .. } if has(&["segment"]) => "segment_image",
            Given { image: true, .. } => "image_to_image",
            Given { image: false, .. } => "text_to_image",
        },
        "video" => match given {
            Given { video: true, .. } if has(&["upscale", "enhance"]) => "upscale_video",
            Given {
                video: true,
                audio: true,
                ..
            } => "lip_sync",
            Given { video: true, .. } if has(&["extend"]) => "extend_video",
            Given { video: true, .. } => "video_to_video",
            Given { image: true, .. } => "image_to_video",
            Given { image: false, .. } => "text_to_video",
        },
        "audio" => match given {
            Given { audio: true, .. } => "audio_to_audio",
            Given { video: true, .. } => "video_to_audio",
            _ if has(&["speech", "tts", "dialogue", "voice"]) => "text_to_speech",
            _ => "text_to_music",
        },
        "model_3d" if given.image => "image_to_3d",
        "model_3d" => "text_to_3d",
        "svg_element" if given.image => "vectorize_image",
        "str" | "text" if has(&[".3d."]) && given.image => "image_to_3d",
        "str" | "text" if has(&["transcribe", "speechrecognition", "audio.translate"]) => {
            "automatic_speech_recognition"
        }
        _ => "generate_message",
    }
}
