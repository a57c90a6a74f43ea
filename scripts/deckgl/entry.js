// What static/map.js uses of deck.gl and luma.gl.
export { Deck, Layer, OrthographicController, OrthographicView, project32 } from "@deck.gl/core";
export { Model } from "@luma.gl/engine";
