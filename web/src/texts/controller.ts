//! Texts of a phone as controller: the invitation in the page, and the controller's own page.

export const controllerTexts = {
  title: "Phone as controller",
  close: "Close",
  how: "Open this link on the phone. Touching it then turns, moves and zooms your view, and steps time.",
  local:
    "The viewer listens on this machine only, so a phone cannot reach it. Start it with `--listen 0.0.0.0` (it then uses https), or use a tunnel.",
  token: "The link has the access token: whoever has it can view the data.",
  noToken:
    "The link has no access token, because this page has none; the phone will ask for it if it is needed.",
  link: "Link of the controller",
  copy: "Copy the link",
  copied: "Link of the controller copied",
  waiting: "Waiting for the phone…",
  connected: "The phone is connected",
  participant: (code: string) => `Controller ${code}`,
  pad: "Touch pad: one finger turns, two fingers move and zoom",
  padHint: "One finger turns, two fingers move and zoom",
  steering: "You steer",
  resting: "Shows the view that you steer",
  alone: "The page that invited this controller is not in the session. Open its link again from there.",
  watching: "This link only allows watching, so it cannot steer. Use one for the role `steer`.",
  nearer: "Nearer",
  farther: "Farther",
  reset: "Reset the camera",
  back: "Time step back",
  play: "Play or pause time",
  forward: "Time step forward",
};
