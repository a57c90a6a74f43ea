// What people say of photos waits here until the server has it, also through a reload and a lost network. Each mark has
// a place of its own in the browser's storage, so no tab writes over what another one keeps. Search and annotate use it.
"use strict";
class Waiting {
  // post sends [[key, value], …] or throws an error with the status of the answer; what the server refuses goes to aside.
  constructor({ place, post, refuses, confirmed, aside, failed }) {
    Object.assign(this, { place, post, refuses, confirmed, aside, failed, sending: null, wake: null });
    const mine = Object.entries(localStorage).filter(([one]) => one.startsWith(place));
    this.marks = new Map(mine.map(([one, value]) => [one.slice(place.length), JSON.parse(value)]));
    // What another tab says later of a photo counts here too, or this one would send its older mark behind it.
    addEventListener("storage", ({ key, newValue }) => {
      const one = key?.startsWith(place) ? key.slice(place.length) : null;
      if (newValue !== null && this.marks.has(one)) this.marks.set(one, JSON.parse(newValue));
    });
    addEventListener("online", () => this.hurry());
  }
  put(key, value) {
    this.marks.set(key, value);
    try { localStorage.setItem(this.place + key, JSON.stringify(value)); } catch { /* no storage: it waits on this page alone */ }
  }
  send() {
    if (this.marks.size) this.sending ??= this.drain().finally(() => { this.sending = null; });
    return this.sending;
  }
  hurry() { this.wake?.(); return this.send(); }
  async drain() {
    for (let wait = 250; this.marks.size;) {
      try {
        await this.deliver([...this.marks].slice(0, 200));
        wait = 250;
        this.failed(null);
      } catch (error) {
        this.failed(error);
        await new Promise((done) => { this.wake = done; setTimeout(done, wait); });
        wait = Math.min(2 * wait, 4000);
      }
    }
  }
  // What is refused is found half by half and holds the others up no longer; whatever else is wrong may pass.
  async deliver(batch) {
    try {
      const answer = await this.post(batch);
      this.forget(batch, answer);
    } catch (error) {
      if (!this.refuses(error.status)) throw error;
      if (batch.length === 1) { this.aside(batch[0], error); return this.forget(batch); }
      const half = Math.ceil(batch.length / 2);
      await this.deliver(batch.slice(0, half));
      await this.deliver(batch.slice(half));
    }
    return null;
  }
  forget(batch, answer) {
    const done = batch.filter(([key, value]) => {
      if (localStorage.getItem(this.place + key) === JSON.stringify(value)) localStorage.removeItem(this.place + key);
      return this.marks.get(key) === value && this.marks.delete(key); // changed again meanwhile: that is still to be saved
    });
    this.confirmed(done, answer);
  }
}
