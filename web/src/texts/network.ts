//! Texts about the connection: why it ended, why something that needs it failed, and what is wrong with a view that arrived.

export const connectionTexts = {
  connection: {
    none: "there is no connection",
    lost: "the connection was lost",
    closed: "the server closed the connection",
    noAnswer: "the server does not answer",
    silent: "the server stopped responding",
    sessionEnded: "the server ended the session",
    invalidMessage: (detail: string) => `invalid message from the server: ${detail}`,
    undecodablePicture: (reason: string) => `a picture could not be decoded: ${reason}`,
    tooManyPictures: (most: number) => `at most ${most} further pictures can be shown`,
    tooManyMeasurements: "too many measurements are under way; wait for one, or cancel it",
    unreachable: "the server cannot be reached",
    proxyAnswers: (status: number) => `the server cannot be reached: a proxy answers ${status} instead`,
    upgradeNotForwarded:
      "the server answers HTTP, but no WebSocket comes through: a proxy or a filter in between does not forward it. " +
      "A proxy must forward the headers Upgrade and Connection (for nginx: proxy_http_version 1.1; " +
      'proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";)',
    kernelSilent: "the kernel of the notebook does not answer; it may be busy or have ended",
  },
  viewWarnings: {
    unreadable: "the link's view cannot be read; showing the default one",
    notAView: "expected a view, found something else",
    otherSchema: (known: number) => `expected a view of schema ${known}, found a different one`,
    invalidField: (name: string) => `the view's \`${name}\` is not valid and was left out`,
  },
};
