//! What is painted: a file for every subject, and for what several of them share (`sky`, `land`, `props`, `trees`).
//!
//! A scene is a method of the canvas. It rolls the dice in a fixed order, so moving a line that rolls them changes every
//! picture of that scene.

mod animal;
mod bauhaus;
mod character;
mod dunes;
mod forest;
mod garden;
mod land;
mod lighthouse;
mod night;
mod person;
mod planet;
mod props;
mod ridges;
mod robot;
mod sky;
mod skyline;
mod table;
mod trees;
mod waves;

use super::brief::Brief;
use super::canvas::Canvas;
use super::words::{Prop, Subject};

impl Canvas {
    /// Paints what a brief asks for.
    pub(super) fn scene(&mut self, brief: &Brief) {
        match brief.subject {
            Subject::Waves => self.scene_waves(brief),
            Subject::Ridges => self.scene_ridges(brief),
            Subject::Night => self.scene_night(brief),
            Subject::Skyline => self.scene_skyline(brief),
            Subject::Forest => self.scene_forest(brief),
            Subject::Garden => self.scene_garden(brief),
            Subject::Character(being) => self.scene_character(brief, being),
            Subject::Bauhaus => self.scene_bauhaus(brief),
            Subject::Planet => self.scene_planet(brief),
            Subject::Dunes => self.scene_dunes(brief),
            Subject::Table => self.scene_table(brief),
        }
        if brief.has(Prop::Rain) {
            self.rain();
        }
        if brief.has(Prop::Snow) {
            self.snow();
        }
    }
}
