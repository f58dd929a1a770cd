//! Texts of places along axes: slices, the clip box, handles, time, and reasons why a place that was typed is refused.

function inUnits(units: string): string {
  return units === "" ? "" : ` in ${units}`;
}

export const placeTexts = {
  places: {
    cutFree: "Cut the volume away in front",
    slices: "Slices",
    cutFreeHint:
      "The clip box ends just before each slice, on the side of the camera. Oblique slices, and two slices across one axis, are not cut free",
    turnedAxes: "The axes of this array are turned against those of the clip box",
    sliceAcross: (axis: string | number) => `Slice across ${axis}`,
    positionOfSlice: (axis: string | number) => `Position of the slice across ${axis}`,
    indexOf: (index: string | number, last: string | number, coordinate: string | number) =>
      `${index} of 0 to ${last}${coordinate}`,
    to: "to",
    wholeVolume: "Whole volume",
    handles: "Handles in the picture",
    handlesHint: "Slices, oblique planes and the clip box can be dragged in the picture",
    clipBox: "Clip box",
    clipBoxHint: "Show the faces of the clip box, to drag them, also around the whole volume",
    clipping: "Clipping",
    indexOfSlice: (axis: string) => `Index of the slice across ${axis}, counted from 0`,
    coordinateOfSlice: (axis: string) => `Coordinate of the slice across ${axis}`,
    lowEndOfBox: (axis: string) => `Least ${axis} of the clip box`,
    highEndOfBox: (axis: string) => `Largest ${axis} of the clip box`,
    /** Planes of a person across x, y and z. */
    medicalPlanes: ["Sagittal", "Coronal", "Axial"] as readonly string[],
  },
  typed: {
    noData: "There are no data",
    empty: "Enter a position",
    notANumber: (units: string) => `Enter a number${inUnits(units)}`,
    notADate: "Enter a date such as 2001-02-28, or 2001-02-28 12:00",
    noDates: (axis: string, units: string) => `Axis ${axis} has no dates; enter a number${inUnits(units)}`,
    noSuchDay: (calendar: string, day: string) => `The calendar ${calendar} has no day ${day}`,
    otherUnits: (axis: string, units: string, typed: string) =>
      `Axis ${axis} is in ${units === "" ? "no units" : units}, not ${typed}`,
    notInOrder: (axis: string) => `The positions of axis ${axis} are not in order`,
    beyondFirst: (first: string) => `That lies beyond the first position${first === "" ? "" : `, ${first}`}`,
    beyondLast: (last: string) => `That lies beyond the last position${last === "" ? "" : `, ${last}`}`,
    outside: (first: string, last: string) => `Enter a position from ${first} to ${last}`,
    notAnIndex: "Enter an index, counted from 0",
    notAnIndexTo: (last: number) => `Enter an index from 0 to ${last}`,
    notAStep: (count: number) => `Enter a step from #1 to #${count}`,
    noCoordinates: "This axis has no coordinates",
    onlySteps: (axis: string) => `Axis ${axis} has no coordinates; enter a step such as #3`,
  },
  handles: {
    label: "Handles of slices and of the clip box",
    slice: (plane: string) => `Slice ${plane}`,
    oblique: "Oblique slice",
    tilt: "Tilt of the oblique slice",
    swing: "Swing of the oblique slice",
    boxFrom: (axis: string) => `Clip box, from ${axis}`,
    boxTo: (axis: string) => `Clip box, to ${axis}`,
  },
  time: {
    panelLabel: "Time and other axes",
    play: "Play",
    loadedHint:
      "Steps that were complete when they were shown. The server reports what the present picture lacks, not which other steps it holds",
    position: (label: string | number, number: string | number, size: string | number) =>
      `${label}, ${number} of ${size}`,
    withKey: (does: string, key: string) => `${does} (${key})`,
    stepsPerSecond: "Steps per second",
    rateHint: "Steps per second; a step that is not on the screen yet is waited for",
    atEnd: "After the last step",
    atEndHint: "What follows the last step",
    positionOn: (name: string | number) => `Position on ${name}`,
    pause: "Pause",
    previousOn: (axis: string) => `Previous ${axis}`,
    nextOn: (axis: string) => `Next ${axis}`,
    typeStep: (axis: string) => `Type the number of a step on ${axis}, such as #3`,
    typeDate: "Type a date to go there, or the number of a step such as #3",
    typeValue: (units: string) =>
      `Type a value${inUnits(units)} to go there, or the number of a step such as #3`,
    repeats: { loop: "Loop", once: "Once", bounce: "Back and forth" },
  },
};
