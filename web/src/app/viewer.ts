//! The viewer: holds the state, talks to the worker, carries out actions. Everything visible is drawn by components
//! from the state; everything about the network happens in the worker.

import { AXIS_VIEWS, fit, toggleProjection } from "../camera/camera.ts";
import {
  asDrawn,
  findArray,
  timeSteps,
  type Dataset,
  type DrawnArray,
  type SelectableMeaning,
} from "../dataset/dataset.ts";
import { statsKey } from "../dataset/stats.ts";
import { worldBox, type WorldBox } from "../dataset/world.ts";
import { Picture, pictureSize, screenSize, type PixelSize } from "../draw/picture.ts";
import type { Json, JsonObject } from "../json.ts";
import type { Embedding } from "../notebook/embedding.ts";
import type { Fidelity, FrameInfo } from "../session/messages.ts";
import { CompleteSteps } from "../session/complete-steps.ts";
import { firstTime, nextTime } from "../session/playback.ts";
import { ViewSync } from "../session/view-sync.ts";
import { texts } from "../texts/texts.ts";
import { formatMarks, parseMarks, storedMarks, storeMarks, type MarkSettings } from "../ui/marks/settings.ts";
import type { VectorField } from "../ui/vectors/field.ts";
import type { PickedPlace } from "../ui/probe/place.ts";
import type { Position } from "../ui/probe/rest.ts";
import { pickedSize, requestPick } from "../ui/probe/requests.ts";
import type { PaneCameras } from "../view/fragment.ts";
import { wholeView, type Camera, type Transfer, type Vec3, type ViewPatch } from "../view/schema.ts";
import type { CalledOperation, FromWorker, ToWorker } from "../worker/messages.ts";
import { Address } from "./address.ts";
import { Calls } from "./calls.ts";
import { pageStorage } from "./storage.ts";
import { copyText } from "./clipboard.ts";
import { ConnectionManager } from "./connection-manager.ts";
import { FirstCamera } from "./first-camera.ts";
import { Screenshot, type PaintOver } from "./screenshot.ts";
import { INITIAL_STATE, type Actions, type PageActions, type State, type Toast } from "./state.ts";
import { StatsRequests } from "./stats-requests.ts";
import { TimePlayer } from "./time-player.ts";
import { MAX_TOASTS, Toasts } from "./toasts.ts";
import { Together } from "./together.ts";

export interface ViewerOptions {
  readonly canvas: HTMLCanvasElement;
  readonly openHelp: () => void;
  readonly openSave: () => void;
  readonly readCenter: () => void;
  readonly page: PageActions;
  /** Name in the session, if the person has no say in it. */
  readonly name?: string;
  readonly onChange: (state: State) => void;
  /** Paints the marks into a picture to save. */
  readonly paintMarks: PaintOver;
  /** Handles a message on a further picture of the page. */
  readonly onPane: (message: Extract<FromWorker, { kind: "pane" }>) => void;
  /** Sets the cameras of further pictures, which another link has. */
  readonly onPaneCameras: (cameras: PaneCameras) => void;
  /**
   * Returns the camera that shows all of the data in the arrangement of the page, null if the node chooses it. Without this, the page
   * never asks for another camera by itself.
   */
  readonly wholeCamera?: () => Camera | null;
  /** Host of a page in a frame. */
  readonly embedding: Embedding | null;
}

export class Viewer implements Actions {
  readonly #options: ViewerOptions;
  readonly #picture: Picture;
  readonly #screenshot: Screenshot;
  readonly #viewSync = new ViewSync();
  readonly #firstCamera = new FirstCamera();
  readonly #address: Address;
  readonly #connection: ConnectionManager;
  readonly #toasts = new Toasts((toasts) => {
    this.#set({ toasts });
  });
  readonly #player = new TimePlayer(() => {
    this.#playStep();
  });
  readonly #completeSteps = new CompleteSteps();
  readonly #statsRequests = new StatsRequests((message) => {
    this.#connection.send(message);
  });
  /** Operations of the node that components call. */
  readonly calls = new Calls((message) => {
    this.#connection.send(message);
  });
  readonly together: Together;
  #state: State = { ...INITIAL_STATE, together: Together.initial() };
  /** View to restore on connecting: settings of the link at first, later the whole view. */
  #requestedView: ViewPatch;
  /** Size of the picture that the node was told on joining. */
  #joinedSize: PixelSize = { width: 0, height: 0 };
  #isScheduled = false;
  /** The data set as described, and the arrays drawn on other axes. */
  #described: Dataset | null = null;
  #drawnArrays: readonly DrawnArray[] = [];

  constructor(options: ViewerOptions) {
    this.#options = options;
    this.#picture = new Picture(options.canvas, (frame) => {
      this.#drawn(frame);
    });
    this.#screenshot = new Screenshot({
      picture: this.#picture,
      toasts: this.#toasts,
      state: () => this.#state,
      paint: options.paintMarks,
      requestStill: () => {
        this.#connection.note({ kind: "still" });
      },
    });
    this.together = new Together({
      canvas: options.canvas,
      toasts: this.#toasts,
      state: () => this.#state,
      set: (together) => {
        this.#set({ together });
      },
      note: (note) => {
        this.#sendView();
        this.#connection.note(note);
      },
      change: (patch, moving) => {
        this.change(patch, moving);
      },
      rest: () => {
        this.rest();
      },
      pick: (at, done) => {
        this.pick(at, (place) => {
          done(place?.world ?? null);
        });
      },
    });
    this.#address = new Address(options.embedding?.settings);
    this.#requestedView = this.#address.patch;
    this.#state = { ...this.#state, mayOpen: options.embedding === null };
    this.#showMarksOf(this.#address.marks);
    this.#connection = new ConnectionManager({
      token: () => this.#address.token,
      ownToken: () => this.together.identity().resume,
      join: () => ({
        session: "main",
        ...this.together.identity(),
        ...(options.name === undefined ? {} : { name: options.name }),
        ...this.#sizeToJoin(),
      }),
      receive: (message) => {
        this.#receive(message);
      },
      onState: (connection) => {
        this.#set({ connection });
      },
      onSize: () => {
        this.#fitFirstCamera();
      },
      transport: options.embedding?.transport,
    });
    for (const warning of this.#address.warnings) this.#toasts.show("warning", warning);
  }

  start(): void {
    new ResizeObserver(() => {
      this.#resized();
    }).observe(this.#options.canvas);
    this.#watchPixelRatio();
    this.#resized();
    this.#address.onNewLink = ({ view, marks, panes }) => {
      this.#options.onPaneCameras(panes);
      this.#showMarksOf(marks);
      if (view) {
        const { array } = this.#viewSync.view;
        // Without a connection it is shown after the next one; before the first one, the node adds the rest.
        this.#requestedView = array === "" ? view : wholeView(view, array);
        this.change(this.#requestedView);
      }
      if (this.#state.connection.kind !== "open") this.connectNow();
    };
    this.#connection.connect();
  }

  get state(): State {
    return this.#state;
  }

  /** Sends a message to the worker, such as one on a further picture. */
  readonly send = (message: ToWorker): void => {
    this.#connection.send(message);
  };

  /** Cameras of further pictures that the link has. */
  get paneCameras(): PaneCameras {
    return this.#address.panes;
  }

  /** Puts the cameras of further pictures into links. */
  rememberPanes(cameras: PaneCameras): void {
    this.#address.panes = cameras;
    this.#remember();
  }
  /** Requests what a place of the picture shows, CSS pixels from its left and top; null if that is not known. */
  readonly pick = (at: Position, done: (place: PickedPlace | null) => void): void => {
    const { width, height } = pickedSize(this.#state);
    const { clientWidth, clientHeight } = this.#options.canvas;
    const [across, down] = [at.x / Math.max(1, clientWidth), at.y / Math.max(1, clientHeight)];
    requestPick(this.calls, this.#state, { x: across * width, y: down * height }, done);
  };

  /** Shows a change of the page around the picture. */
  show(change: Partial<Pick<State, "theme" | "devices">>): void {
    this.#set(change);
  }

  /** Calls an operation of the node that answers with one item; throws an `Error` with its reason. */
  readonly ask = (name: CalledOperation, parameters: JsonObject): Promise<Json> =>
    new Promise((resolve, reject) => {
      let answer: Json = null;
      this.calls.call(name, parameters, {
        item: (item) => {
          answer = item;
        },
        ended: (reason) => {
          if (reason === null) resolve(answer);
          else reject(new Error(reason));
        },
      });
    });

  /** Access token of the page; empty if it has none. */
  get token(): string {
    return this.#address.token;
  }

  /** Shows a short message. */
  readonly tell = (severity: Toast["severity"], text: string): void => {
    this.#toasts.show(severity, text);
  };

  setColormaps(colormaps: State["colormaps"]): void {
    this.#set({ colormaps });
  }

  // Camera and volume.

  camera(): Camera | null {
    return this.#viewSync.view.camera;
  }

  box(): WorldBox | null {
    return this.#state.array ? worldBox(this.#state.array) : null;
  }

  // Actions.

  change = (patch: ViewPatch, moving = false, automatic = false): void => {
    if (this.#state.role === "watch") {
      if (automatic) return;
      this.#toasts.show("info", texts.page.watching);
      return;
    }
    this.#apply(patch, moving, automatic);
    this.#remember();
  };

  rest = (): void => {
    this.#viewSync.rest();
    this.#schedule();
  };

  edit = (how: (transfer: Transfer) => Transfer, moving = false, automatic = false): void => {
    const { transfer } = this.#viewSync.view;
    if (transfer) this.change({ transfer: how(transfer) }, moving, automatic);
  };

  showArray = (name: string): void => {
    const array = this.#state.dataset ? findArray(this.#state.dataset, name) : null;
    // The node decides what else changes: `View::with_consequences`.
    if (array) this.change({ array: array.name });
  };

  interpret = (meaning: SelectableMeaning | null): void => {
    this.#connection.send({ kind: "interpret", meaning });
  };

  togglePlay = (): void => {
    const isPlaying =
      !this.#state.isPlaying && this.#state.array !== null && timeSteps(this.#state.array) > 1;
    this.#set({ isPlaying });
    if (isPlaying && this.#state.array) {
      const { view, playback, array } = this.#state;
      const first = firstTime(view.time, timeSteps(array), playback.repeat);
      this.#player.direction = 1;
      if (first !== view.time) this.change({ time: first }, true);
      this.#player.schedule(this.#isCurrent(), playback);
    } else {
      this.rest();
      if (this.#state.fidelity) this.#statsRequests.update(this.#state, this.#state.fidelity);
    }
  };

  setPlayback = (playback: Partial<State["playback"]>): void => {
    this.#set({ playback: { ...this.#state.playback, ...playback } });
  };

  stepTime = (by: number): void => {
    const steps = this.#state.array ? timeSteps(this.#state.array) : 0;
    if (steps > 1) this.change({ time: (this.#viewSync.view.time + by + steps) % steps });
  };

  resetCamera = (): void => {
    // As for the first picture.
    const camera = this.#options.wholeCamera?.() ?? null;
    this.change({ camera });
    if (this.#state.role === "watch") return;
    this.#firstCamera.chosen(camera, this.#connection.size);
    this.#viewChanged();
    this.#remember();
  };

  axisView = (index: number): void => {
    const axis = AXIS_VIEWS[index];
    if (axis) this.#look(axis.forward, axis.up);
  };

  toggleProjection = (): void => {
    const camera = this.camera();
    if (!camera) return;
    const toggled = toggleProjection(camera);
    // With parallel rays both eyes see the same picture.
    this.change(
      "orthographic" in toggled.projection ? { camera: toggled, stereo: null } : { camera: toggled },
    );
  };

  openSave = (): void => {
    this.#options.openSave();
  };

  /** Returns the link to the view. */
  link(withToken: boolean): string {
    return this.#address.linkTo(this.#viewSync.view, withToken);
  }

  screenshot = (): void => {
    this.#screenshot.take();
  };

  copyLink = (withToken: boolean): void => {
    const link = this.#address.linkTo(this.#viewSync.view, withToken);
    void copyText(link).then((isCopied) => {
      if (!isCopied) this.#toasts.show("warning", texts.page.noCopying);
      else if (withToken) this.#toasts.show("warning", texts.page.linkCopiedWithToken);
      else this.#toasts.show("info", texts.page.linkCopied, this.#copyWithToken());
    });
  };

  togglePanel = (): void => {
    this.#set({ isPanelOpen: !this.#state.isPanelOpen });
  };

  setMarks = (marks: MarkSettings): void => {
    storeMarks(pageStorage("localStorage"), marks);
    this.#address.marks = formatMarks(marks);
    this.#remember();
    this.#set({ marks });
  };

  chooseVectors = (choice: string): void => {
    this.#set({ arrows: { ...this.#state.arrows, choice } });
  };

  /** Shows the vectors that were read. */
  setVectors = (field: VectorField | null): void => {
    this.#set({ arrows: { ...this.#state.arrows, field } });
  };

  nextBackground = (): void => {
    this.#options.page.nextBackground();
  };

  setTheme = (theme: State["theme"]): void => {
    this.#options.page.setTheme(theme);
  };

  toggleFullscreen = (): void => {
    this.#options.page.toggleFullscreen();
  };

  openData = (): void => {
    this.#options.page.openData();
  };

  connectSpaceMouse = (): void => {
    this.#options.page.connectSpaceMouse();
  };

  inviteController = (): void => {
    this.#options.page.inviteController();
  };

  openHelp = (): void => {
    this.#options.openHelp();
  };

  readCenter = (): void => {
    this.#options.readCenter();
  };

  connectNow = (): void => {
    this.#connection.connect();
  };

  useToken = (token: string): void => {
    this.#address.setToken(token);
    this.#connection.connect();
  };

  dismiss = (toast: number): void => {
    this.#toasts.dismiss(toast);
  };

  // Messages of the worker.

  #receive(message: FromWorker): void {
    switch (message.kind) {
      case "joined":
        this.#set({ connection: { kind: "open", isSilent: false }, you: message.you, role: message.role });
        this.#joined(message.view, message.seq);
        this.together.receive(message);
        return;
      case "dataset":
        this.#describe(message.dataset);
        return;
      case "drawn":
        this.#drawnArrays = message.arrays;
        if (this.#described) this.#set({ dataset: asDrawn(this.#described, message.arrays) });
        this.#viewChanged();
        return;
      case "participants":
        this.#participantsChanged(message.list);
        this.together.receive(message);
        return;
      case "view":
        this.#incoming(message.seq, message.view);
        return;
      case "frame":
        this.#picture.show(message.frame, message.bitmap, this.#viewSync.cameraAt(message.frame.seq));
        return;
      case "fidelity":
        this.#setFidelity(message.fidelity);
        return;
      case "message":
        this.#toasts.show(message.severity, message.text);
        return;
      case "following":
        this.together.receive(message);
        this.#firstCamera.follows(message.leader);
        this.#fitFirstCamera();
        return;
      case "shared":
      case "pointers":
      case "history":
      case "removed":
        this.together.receive(message);
        return;
      case "values":
        this.#set({ values: message.values });
        return;
      case "servers":
        this.#set({ servers: message.servers });
        return;
      case "stats": {
        const stats = this.#statsRequests.accept(message.id, message.stats);
        if (stats) this.#set({ stats });
        if (stats && this.#state.fidelity) this.#statsRequests.update(this.#state, this.#state.fidelity);
        return;
      }
      case "called":
        this.calls.called(message.id, message.item, message.bulk);
        return;
      case "callEnded":
        this.calls.ended(message.id, message.reason);
        return;
      case "statsFailed":
        // The editor works without a histogram.
        this.#statsRequests.failed();
        return;
      case "pane":
        this.#options.onPane(message);
        return;
      case "silent":
        if (this.#state.connection.kind === "open")
          this.#set({ connection: { kind: "open", isSilent: message.isSilent } });
        return;
      case "refused":
      case "disconnected":
        // The connection manager handles these.
        this.calls.disconnected();
        return;
    }
  }

  #joined(view: Json, seq: number): void {
    // Answers to calls of an earlier connection cannot arrive any more.
    this.calls.disconnected();
    // Somebody who only watches, or follows as before, sees the view of the leader.
    const isLed = this.#state.role === "watch" || (seq > 0 && this.#state.together.leader !== null);
    const wanted = isLed ? {} : this.#wantedView();
    this.#viewSync.joined(view, wanted, seq);
    const isNew = seq === 0 && !isLed && (wanted.camera ?? null) === null;
    this.#firstCamera.joined({ camera: this.#viewSync.view.camera, isNew, size: this.#joinedSize });
    this.#statsRequests.reset();
    this.#drawnArrays = [];
    // Numbers of frames and views restart; the old picture stays on the canvas until a new one arrives.
    this.#set({ frame: null, fidelity: null });
    this.#viewChanged();
  }

  /** Returns what to ask for after joining; a camera that nobody has moved is chosen again if the session is a new one. */
  #wantedView(): ViewPatch {
    if (!this.#firstCamera.isAutomatic) return this.#requestedView;
    const others = Object.entries(this.#requestedView).filter(([name]) => name !== "camera");
    return Object.fromEntries(others);
  }

  #participantsChanged(participants: State["participants"]): void {
    const role = participants.find((person) => person.id === this.#state.you)?.role ?? this.#state.role;
    if (role !== this.#state.role) this.#toasts.show("info", texts.page.roleChanged(role));
    this.#set({ participants, role });
  }

  #incoming(seq: number, view: Json): void {
    const { isSettling } = this.#viewSync;
    this.#viewSync.incoming(seq, view);
    this.#firstCamera.incoming(this.#viewSync.view.camera, isSettling, this.#connection.size);
    this.#viewChanged();
  }

  #describe(dataset: Dataset): void {
    document.title = texts.app.title(dataset.name);
    const known = this.#state.dataset;
    if (known?.id !== dataset.id || known.generation !== dataset.generation) this.#statsRequests.reset();
    this.#described = dataset;
    const shown = asDrawn(dataset, this.#drawnArrays);
    this.#set(
      this.#statsRequests.isValid ? { dataset: shown } : { dataset: shown, stats: null, values: null },
    );
    this.#viewChanged();
    for (const warning of dataset.warnings.slice(0, MAX_TOASTS)) this.#toasts.show("warning", warning);
  }

  #viewChanged(): void {
    const { view } = this.#viewSync;
    const { dataset } = this.#state;
    const array = dataset ? findArray(dataset, view.array) : null;
    const stats = this.#state.stats?.array === array?.name ? this.#state.stats : null;
    const isElsewhere = array !== null && stats !== null && stats.position !== statsKey(array, view);
    // After the first answer, which has a camera, a reconnection restores the view on the screen: also what was changed or cleared
    // without a connection.
    if (view.camera !== null) this.#requestedView = view;
    this.#picture.setBackground(view.background);
    this.#picture.follow(view.camera);
    const { isSettling } = this.#viewSync;
    const { isAutomatic: isCameraAutomatic } = this.#firstCamera;
    this.#set({ view, array, stats, isCurrent: this.#isCurrent(), isSettling, isCameraAutomatic });
    // During playback no histograms are requested; one is requested for the step at which it stops.
    if (isElsewhere && this.#state.fidelity && !this.#state.isPlaying)
      this.#statsRequests.update(this.#state, this.#state.fidelity);
  }

  #isCurrent(): boolean {
    return this.#state.frame !== null && this.#viewSync.isCurrent(this.#state.frame.seq);
  }

  /** Confirms a frame that is on the screen to the node and shows its fidelity. */
  #drawn(frame: FrameInfo): void {
    this.#connection.note({ kind: "shown", frame: frame.id });
    this.#set({ frame });
    this.#setFidelity(frame.fidelity);
    this.#screenshot.drawn(frame);
    if (this.#state.isPlaying) this.#player.schedule(this.#state.isCurrent, this.#state.playback);
  }

  #setFidelity(fidelity: Fidelity): void {
    this.#set({ fidelity, isCurrent: this.#isCurrent() });
    this.#noteStep(fidelity);
    this.#statsRequests.update(this.#state, fidelity);
  }

  /** Notes that a time step is complete on the screen. */
  #noteStep(fidelity: Fidelity): void {
    const { array, view, dataset } = this.#state;
    if (!array || timeSteps(array) < 2) return;
    this.#completeSteps.begin(
      JSON.stringify([dataset?.id, dataset?.generation, array.name, view.at, view.level]),
    );
    const hasAll = fidelity.blocksTotal > 0 && fidelity.blocksPresent === fidelity.blocksTotal;
    if (hasAll && this.#isCurrent()) this.#completeSteps.add(view.time);
    const { runs } = this.#completeSteps;
    if (runs !== this.#state.completeSteps) this.#set({ completeSteps: runs });
  }

  #apply(patch: ViewPatch, moving: boolean, automatic: boolean): void {
    this.#viewSync.change(patch, moving, automatic);
    if (patch.camera !== undefined && automatic) this.#firstCamera.adjusted(patch.camera);
    else if (patch.camera !== undefined) this.#firstCamera.moved(patch.camera, this.#connection.size);
    this.#viewChanged();
  }

  // Camera, time and size.

  /** Lets the camera be chosen for the size that the node knows of, if nobody has moved the one that was chosen before. */
  #fitFirstCamera(): void {
    const { wholeCamera } = this.#options;
    if (!wholeCamera || this.#state.connection.kind !== "open" || this.#state.role === "watch") return;
    if (!this.#firstCamera.take(this.#connection.size)) return;
    this.#apply({ camera: wholeCamera() }, false, true);
  }

  #look(forward: Vec3, up: Vec3): void {
    const box = this.box();
    const { clientWidth: width, clientHeight: height } = this.#options.canvas;
    if (box) this.change({ camera: fit(box, forward, up, { width, height }, this.camera()) });
  }

  #playStep(): void {
    if (!this.#state.isPlaying || !this.#state.array) return;
    this.#player.stepped();
    const { repeat } = this.#state.playback;
    const steps = timeSteps(this.#state.array);
    const next = nextTime(this.#viewSync.view.time, steps, this.#player.direction, repeat);
    if (!next) {
      this.togglePlay();
      return;
    }
    this.#player.direction = next.direction;
    this.change({ time: next.time }, true);
  }

  #sizeToJoin(): PixelSize {
    this.#joinedSize = pictureSize(this.#screen());
    return this.#joinedSize;
  }

  #screen(): PixelSize {
    const { clientWidth, clientHeight } = this.#options.canvas;
    return screenSize(clientWidth, clientHeight, window.devicePixelRatio);
  }

  /** Watches for a move to another screen, which changes the size in device pixels but not in CSS pixels. */
  #watchPixelRatio(): void {
    const query = window.matchMedia(`(resolution: ${window.devicePixelRatio}dppx)`);
    query.addEventListener(
      "change",
      () => {
        this.#resized();
        this.#watchPixelRatio();
      },
      { once: true },
    );
  }

  #resized(): void {
    const screen = this.#screen();
    this.#picture.resize(screen);
    this.#connection.resize(pictureSize(screen));
    this.#set({ screen });
  }

  // Links and state.

  /** Puts the view into the address, without a camera that nobody has chosen: other windows have their own. */
  #remember(): void {
    const { view } = this.#viewSync;
    this.#address.remember(this.#firstCamera.isAutomatic ? { ...view, camera: null } : view);
  }

  #copyWithToken(): Toast["action"] {
    if (this.#address.token === "") return null;
    return {
      label: texts.page.copyWithToken,
      run: () => {
        this.copyLink(true);
      },
    };
  }

  /** Shows the marks that a link names, or those that the browser keeps. */
  #showMarksOf(link: string | null): void {
    const marks = parseMarks(link) ?? storedMarks(pageStorage("localStorage"));
    this.#address.marks = formatMarks(marks);
    this.#set({ marks });
  }

  #set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
    this.#schedule();
  }

  /** Sends the pending changes of the view. */
  #sendView(): void {
    if (this.#state.connection.kind !== "open") return;
    const note = this.#viewSync.takeNote();
    if (note) this.#connection.note(note);
  }

  /** Schedules, once per animation frame, one note with all changes and one update of the components. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      this.#sendView();
      this.#state = { ...this.#state, isCurrent: this.#isCurrent() };
      this.#options.onChange(this.#state);
    });
  }
}
