//! Presets of transfer functions by kind of data. Made from crates/view/src/preset.rs by
//! `CORRIDOR_BLESS=1 cargo test -p corridor-view --test generated`; change that file, not this one.

/** Ends of the color map: values, shares of the values, or a share of the magnitudes or of the values above the background. */
export type PresetRange =
  | { readonly kind: "values"; readonly ends: readonly [number, number] }
  | { readonly kind: "shares"; readonly ends: readonly [number, number] }
  | { readonly kind: "symmetric" | "aboveBackground"; readonly share: number };

export interface DataPreset {
  readonly name: string;
  readonly label: string;
  readonly help: string;
  /** Kinds of data that it is offered for first. */
  readonly kinds: readonly string[];
  readonly map: string;
  readonly range: PresetRange;
  /** Values, or shares of the range, with the thickness there. */
  readonly points: readonly (readonly [place: number, thickness: number])[];
}

/** Threshold of the symmetric logarithm, as a share of the largest magnitude of the range. */
export const SYMLOG_SHARE = 0.001;

export const DATA_PRESETS: readonly DataPreset[] = [
  {
    name: "ct",
    label: "CT: skin and bone",
    help: "Computed tomography in Hounsfield units: bone within translucent skin.",
    kinds: ["ct"],
    map: "ct-bone",
    range: {"kind":"values","ends":[-500.0,1000.0]},
    points: [[-700.0,0.0],[-500.0,0.12],[-300.0,0.12],[-150.0,0.02],[100.0,0.02],[200.0,0.5],[400.0,5.0],[1000.0,10.0]],
  },
  {
    name: "ct-bone",
    label: "CT: bone",
    help: "Computed tomography in Hounsfield units: bone alone.",
    kinds: ["ct"],
    map: "ct-bone",
    range: {"kind":"values","ends":[-500.0,1000.0]},
    points: [[130.0,0.0],[220.0,0.6],[400.0,5.0],[1000.0,10.0]],
  },
  {
    name: "ct-soft-tissue",
    label: "CT: soft tissue",
    help: "Computed tomography in Hounsfield units: fat, muscle and organs.",
    kinds: ["ct"],
    map: "ct-soft",
    range: {"kind":"values","ends":[-160.0,240.0]},
    points: [[-250.0,0.0],[-150.0,0.3],[-50.0,0.5],[20.0,1.5],[100.0,3.0],[240.0,5.0]],
  },
  {
    name: "ct-lung",
    label: "CT: lung",
    help: "Computed tomography in Hounsfield units: lung and airways.",
    kinds: ["ct"],
    map: "ct-lung",
    range: {"kind":"values","ends":[-1000.0,-300.0]},
    points: [[-960.0,0.0],[-900.0,0.4],[-700.0,0.8],[-500.0,0.5],[-400.0,0.05],[-300.0,0.0]],
  },
  {
    name: "mr",
    label: "MR",
    help: "Magnetic resonance and other scans without units: gray above the background.",
    kinds: ["mr"],
    map: "gray",
    range: {"kind":"aboveBackground","share":0.998},
    points: [[0.0,0.0],[0.1,0.25],[0.4,0.8],[1.0,3.0]],
  },
  {
    name: "microscopy",
    label: "Microscopy",
    help: "Microscope images: dark values are transparent; from the first percentile to the 99.8th.",
    kinds: ["microscopy"],
    map: "gray",
    range: {"kind":"shares","ends":[0.01,0.998]},
    points: [[0.0,0.0],[0.12,0.0],[0.5,0.6],[1.0,3.0]],
  },
  {
    name: "segmentation",
    label: "Segmentation",
    help: "Labels: a color for each whole number, 0 is transparent.",
    kinds: ["labels"],
    map: "labels",
    range: {"kind":"values","ends":[0.0,255.0]},
    points: [[-1.0,1.0],[-0.5,1.0],[-0.5,0.0],[0.5,0.0],[0.5,1.0]],
  },
  {
    name: "simulation",
    label: "Simulation",
    help: "Fields: the high values emphasized, the low ones faint.",
    kinds: ["field"],
    map: "viridis",
    range: {"kind":"shares","ends":[0.002,0.998]},
    points: [[0.0,0.0],[0.15,0.0],[0.3,0.03],[0.6,0.12],[0.8,0.5],[1.0,2.0]],
  },
  {
    name: "signed",
    label: "Signed field",
    help: "Fields of both signs: symmetric about zero, which is transparent.",
    kinds: ["signed"],
    map: "coolwarm",
    range: {"kind":"symmetric","share":0.995},
    points: [[0.0,1.5],[0.2,0.4],[0.4,0.0],[0.6,0.0],[0.8,0.4],[1.0,1.5]],
  },
];
