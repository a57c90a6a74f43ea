// Points of the map as pairs of 16 bits: which one is near, and which lie in a polygon.
"use strict";
globalThis.mapPoints = (() => {
const CELLS = 256, SHIFT = 8;

// Finds the point next to a place by a grid of cells, each with its points in a row.
class Finder {
  constructor(positions) {
    this.positions = positions;
    const count = positions.length / 2, starts = new Uint32Array(CELLS * CELLS + 1);
    const bounds = [65535, 65535, 0, 0];
    for (let at = 0; at < count; at++) {
      const x = positions[2 * at], y = positions[2 * at + 1];
      starts[((y >> SHIFT) * CELLS) + (x >> SHIFT) + 1]++;
      if (x < bounds[0]) bounds[0] = x;
      if (y < bounds[1]) bounds[1] = y;
      if (x > bounds[2]) bounds[2] = x;
      if (y > bounds[3]) bounds[3] = y;
    }
    for (let cell = 0; cell < CELLS * CELLS; cell++) starts[cell + 1] += starts[cell];
    const next = starts.slice(), inside = new Uint32Array(count);
    for (let at = 0; at < count; at++) inside[next[((positions[2 * at + 1] >> SHIFT) * CELLS) + (positions[2 * at] >> SHIFT)]++] = at;
    Object.assign(this, { starts, inside, bounds: count ? bounds : [0, 0, 65535, 65535] });
  }
  // The nearest point to (x, y) at most `reach` away, or -1.
  nearest(x, y, reach) {
    const edge = (value) => Math.max(0, Math.min(CELLS - 1, value >> SHIFT));
    let best = -1, far = reach * reach;
    for (let row = edge(y - reach); row <= edge(y + reach); row++) {
      for (let at = this.starts[row * CELLS + edge(x - reach)]; at < this.starts[row * CELLS + edge(x + reach) + 1]; at++) {
        const one = this.inside[at], right = this.positions[2 * one] - x, up = this.positions[2 * one + 1] - y;
        const distance = right * right + up * up;
        if (distance < far) { far = distance; best = one; }
      }
    }
    return best;
  }
}

// The points in a polygon by the even-odd rule, as the server counts them.
function inPolygon(positions, corners) {
  const found = [];
  for (let at = 0; at < positions.length / 2; at++) {
    const x = positions[2 * at], y = positions[2 * at + 1];
    let inside = false;
    for (let one = 0; one < corners.length; one++) {
      const [x1, y1] = corners[one], [x2, y2] = corners[(one + 1) % corners.length];
      if ((y1 > y) !== (y2 > y) && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) inside = !inside;
    }
    if (inside) found.push(at);
  }
  return found;
}

// A closed line with at most `most` corners: those that change it least go first (Visvalingam and Whyatt 1993).
function simplified(corners, most) {
  const left = corners.filter((one, at) => !at || one[0] !== corners[at - 1][0] || one[1] !== corners[at - 1][1]);
  const area = (at) => {
    const [a, b, c] = [left[(at + left.length - 1) % left.length], left[at], left[(at + 1) % left.length]];
    return Math.abs((b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1]));
  };
  while (left.length > most) {
    let least = 0;
    for (let at = 1; at < left.length; at++) if (area(at) < area(least)) least = at;
    left.splice(least, 1);
  }
  return left;
}
return { Finder, inPolygon, simplified };
})();
