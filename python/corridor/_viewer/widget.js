// The widget of a notebook: shows the viewer's page in a frame, and relays its messages through the kernel. One script for
// all hosts of anywidget. The page has no access to the notebook: its frame is an origin of its own.

const ANSWER_LIMIT_MILLIS = 20_000;

function render({ model, el }) {
  const own = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  /** Ports of the page by the ids of their relays. */
  const ports = new Map();
  let settings = null;
  let count = 0;
  /** View that the page shows, as text. */
  let shown = "";

  const box = document.createElement("div");
  box.className = "corridor-viewer";
  box.style.cssText = "position:relative;width:100%;min-height:100px;resize:vertical;overflow:hidden;background:#0d0e12;color:#ddd";
  const words = document.createElement("p");
  words.style.cssText = "margin:0;padding:1em;font:14px/1.5 system-ui,sans-serif";
  words.textContent = "Loading the viewer ...";
  box.append(words);
  el.append(box);
  const resize = () => {
    box.style.height = `${model.get("height")}px`;
  };
  resize();

  const silence = setTimeout(() => {
    words.textContent = "The kernel does not answer: it is busy, or has ended. Wait, or run the cell again.";
  }, ANSWER_LIMIT_MILLIS);

  let frame = null;
  const toPage = (message, transfer = []) => frame?.contentWindow?.postMessage(message, "*", transfer);

  const showPage = (page) => {
    clearTimeout(silence);
    frame?.remove();
    frame = document.createElement("iframe");
    frame.title = "Corridor";
    frame.setAttribute("sandbox", "allow-scripts allow-downloads allow-popups");
    frame.style.cssText = "position:absolute;inset:0;width:100%;height:100%;border:0";
    frame.srcdoc = page.replace("<html", "<html data-embedded");
    box.replaceChildren(frame);
  };

  const connect = (port) => {
    const relay = `${own}-${++count}`;
    ports.set(relay, port);
    port.onmessage = ({ data }) => {
      if (data instanceof ArrayBuffer) model.send({ kind: "data", relay }, undefined, [data]);
      else if (data.kind === "done") model.send({ kind: "grant", relay, bytes: data.bytes });
      else if (data.kind === "close" && ports.delete(relay)) model.send({ kind: "close", relay });
    };
    model.send({ kind: "open", relay });
  };

  const fromPage = ({ source, data, ports: [port] }) => {
    if (!frame || source !== frame.contentWindow) return;
    switch (data.kind) {
      case "ready":
        shown = JSON.stringify(model.get("view"));
        toPage({ kind: "configure", ...settings, view: model.get("view") });
        break;
      case "connect":
        connect(port);
        break;
      case "view":
        shown = JSON.stringify(data.view);
        if (shown === JSON.stringify(model.get("view"))) break;
        model.set("view", data.view);
        model.save_changes();
        break;
      case "pick":
        model.send(data);
        break;
    }
  };

  const fromKernel = (message, buffers) => {
    if (message.to === own && message.kind === "page") {
      settings = message.settings;
      showPage(new TextDecoder().decode(buffers[0]));
    } else if (message.to === own) {
      clearTimeout(silence);
      words.textContent = message.reason;
    }
    const port = ports.get(message.relay);
    if (!port) return;
    if (message.kind === "data") {
      const view = buffers[0];
      const bytes = view instanceof ArrayBuffer ? view.slice(0) : view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
      port.postMessage(bytes, [bytes]);
    } else {
      const { kind, bytes, reason } = message;
      port.postMessage({ kind, bytes, reason });
      if (kind === "closed") ports.delete(message.relay);
    }
  };

  const fromModel = () => {
    const view = model.get("view");
    const text = JSON.stringify(view);
    if (text === shown) return;
    shown = text;
    toPage({ kind: "view", view });
  };

  window.addEventListener("message", fromPage);
  model.on("msg:custom", fromKernel);
  model.on("change:view", fromModel);
  model.on("change:height", resize);
  model.send({ kind: "page", to: own });

  return () => {
    clearTimeout(silence);
    for (const relay of ports.keys()) model.send({ kind: "close", relay });
    ports.clear();
    window.removeEventListener("message", fromPage);
    model.off("msg:custom", fromKernel);
    model.off("change:view", fromModel);
    model.off("change:height", resize);
  };
}

export default { render };
