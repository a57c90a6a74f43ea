// Two ways to draw the points of the map: deck.gl where a graphics card does the work, and a plain canvas where a program
// would have to imitate one, which takes a hundred times as long as setting the pixels of the points.
"use strict";
globalThis.mapDrawing = (() => {
const { Deck, Layer, Model, OrthographicView, project32 } = globalThis.deckgl ?? {};
const IMITATED = /swiftshader|llvmpipe|softpipe|software|basic render|swrast/i;
const ratio = () => Math.min(2, devicePixelRatio);

const VERTEX = `#version 300 es
in vec2 positions; in vec4 colours;
out vec4 colour;
void main() {
  colour = colours;
  gl_Position = project_position_to_clipspace(vec3(positions, 0.0), vec3(0.0), vec3(0.0));
  gl_PointSize = dots.size;
}`;
const FRAGMENT = `#version 300 es
precision highp float;
in vec4 colour; out vec4 fragColor;
void main() {
  if (dots.size > 3.5 && length(gl_PointCoord - 0.5) > 0.5) discard;
  fragColor = colour;
}`;
const dots = { name: "dots", vs: "layout(std140) uniform dotsUniforms { float size; } dots;", fs: "layout(std140) uniform dotsUniforms { float size; } dots;", uniformTypes: { size: "f32" } };

// Points of one size as they come from the server, drawn without a copy; `count` draws the first of them alone.
const Dots = Layer && class extends Layer {
  static layerName = "Dots";
  initializeState() {
    const { device } = this.context, { positions, colours } = this.props;
    const buffers = { positions: device.createBuffer({ data: positions }), colours: device.createBuffer({ data: colours }) };
    const model = new Model(device, {
      ...super.getShaders({ vs: VERTEX, fs: FRAGMENT, modules: [project32, dots] }), id: this.props.id, topology: "point-list",
      vertexCount: this.props.count, attributes: buffers, isInstanced: false,
      bufferLayout: [{ name: "positions", format: "unorm16x2" }, { name: "colours", format: "unorm8x4" }],
      parameters: { depthWriteEnabled: false, depthCompare: "always", blend: true, blendColorSrcFactor: "src-alpha", blendColorDstFactor: "one-minus-src-alpha", blendAlphaSrcFactor: "one", blendAlphaDstFactor: "one-minus-src-alpha" },
    });
    this.setState({ model, buffers });
  }
  updateState({ props, oldProps }) {
    if (oldProps.colours && props.colours !== oldProps.colours) this.state.buffers.colours.write(props.colours);
  }
  draw() {
    const { model } = this.state;
    model.setVertexCount(this.props.count);
    model.shaderInputs.setProps({ dots: { size: this.props.size } });
    model.draw(this.context.renderPass);
  }
  finalizeState(context) { super.finalizeState(context); for (const one of Object.values(this.state.buffers)) one.destroy(); }
};

// Whether this browser has a graphics card behind its WebGL; `wanted` is "webgl" or "canvas" to have the one or the other.
function hasCard(wanted) {
  if (!Layer || wanted === "canvas") return false;
  const gl = document.createElement("canvas").getContext("webgl2"), named = gl?.getExtension("WEBGL_debug_renderer_info");
  const renderer = gl ? String(gl.getParameter(named ? named.UNMASKED_RENDERER_WEBGL : gl.RENDERER)) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return Boolean(gl) && (wanted === "webgl" || !IMITATED.test(renderer));
}

class WithCard {
  constructor(parent, picture, view) {
    this.picture = picture;
    this.ready = new Promise((done, fail) => {
      this.deck = new Deck({ parent, views: new OrthographicView({ id: "map", flipY: false }), controller: false, viewState: view,
        layers: this.layers(view), useDevicePixels: ratio(), getCursor: () => "inherit", onError: fail, onAfterRender: () => done() });
    });
  }
  layers(view) {
    const { picture } = this, size = picture.size(view.zoom) * ratio();
    const found = [new Dots({ id: "all", positions: picture.positions, colours: picture.colours, count: picture.count, size })];
    if (picture.lit?.length) found.push(new Dots({ id: "lit", positions: picture.litPositions, colours: picture.litColours, count: picture.lit.length, size: size + 4 * ratio() }));
    return found;
  }
  draw(view) { this.deck.setProps({ viewState: view, layers: this.layers(view) }); }
}

// While the map moves, a machine that is too slow for it draws a fair sample of the points, and no finer pixels than the
// page has; once it rests it draws all. `share` of the points is what this machine has shown to manage.
const SLOW = 28, LEAST = 1 / 16; // milliseconds of a frame
class OnCanvas {
  constructor(parent, picture, view) {
    this.parent = parent;
    this.picture = picture;
    this.share = 1;
    this.slow = 0; // slow frames one after the other
    this.steady = false; // no frame was too slow since the map rested
    this.canvas = document.createElement("canvas");
    parent.append(this.canvas);
    this.ready = Promise.resolve(this.draw(view));
  }
  draw(view, moving = false) {
    const began = performance.now(), share = moving ? this.share : 1, fine = share < 1 ? 1 : ratio();
    const { canvas, picture, parent } = this, wide = Math.round(parent.clientWidth * fine), high = Math.round(parent.clientHeight * fine);
    if (!this.image || canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
      this.context = canvas.getContext("2d", { willReadFrequently: true });
      this.image = this.context.createImageData(wide, high);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.pixels.fill(0);
    const size = picture.size(view.zoom) * fine;
    this.dots(picture.positions, picture.colours.subarray(0, 4 * Math.ceil(picture.count * share)), view, size, fine);
    if (picture.lit?.length) this.dots(picture.litPositions, picture.litColours, view, size + 4 * fine, fine);
    this.context.putImageData(this.image, 0, 0);
    if (moving) requestAnimationFrame(() => this.pace(performance.now() - began));
    else this.rest();
  }
  pace(took) {
    this.slow = took > SLOW ? this.slow + 1 : 0;
    if (this.slow < 2) return;
    this.share = Math.max(LEAST, this.share / 2);
    this.slow = 0;
    this.steady = false;
  }
  rest() {
    if (this.steady) this.share = Math.min(1, 2 * this.share);
    this.slow = 0;
    this.steady = true;
  }
  dots(positions, colours, view, size, fine) {
    const { width, height } = this.image, { pixels } = this, paints = new Uint32Array(colours.buffer, 0, colours.length / 4), half = size / 2;
    const scale = (2 ** view.zoom * fine) / 65535, left = width / 2 - view.target[0] * 2 ** view.zoom * fine, top = height / 2 + view.target[1] * 2 ** view.zoom * fine;
    // A disc as what to add to its first pixel's number for each of its pixels; small ones are squares.
    const side = Math.round(size), disc = [];
    for (let row = 0; row < side; row++) {
      for (let column = 0; column < side; column++) {
        if (size < 3.5 || Math.hypot(row + 0.5 - half, column + 0.5 - half) <= half) disc.push(row * width + column);
      }
    }
    const offsets = Int32Array.from(disc), fixed = left - half + 0.5, across = top - half + 0.5, right = width - side, bottom = height - side;
    for (let at = 0; at < paints.length; at++) {
      const x = Math.floor(fixed + positions[2 * at] * scale), y = Math.floor(across - positions[2 * at + 1] * scale);
      if (x < 0 || y < 0 || x > right || y > bottom) continue;
      const start = y * width + x, paint = paints[at];
      for (let one = 0; one < offsets.length; one++) pixels[start + offsets[one]] = paint;
    }
  }
}
const drawn = (parent, picture, view, wanted) => new (hasCard(wanted) ? WithCard : OnCanvas)(parent, picture, view);
return { drawn };
})();
