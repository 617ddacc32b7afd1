// An event store that resumes every stream, which the SDK's example does not: it finds no standalone stream again.
export class OrderedStore {
  #rows = [];
  #last = 0;

  async storeEvent(streamId, message) {
    const id = `${streamId}:${(this.#last += 1)}`;
    this.#rows.push({ id, streamId, message });
    return id;
  }

  async replayEventsAfter(lastEventId, { send }) {
    const at = this.#rows.findIndex((row) => row.id === lastEventId);
    if (at < 0) return "";
    const { streamId } = this.#rows[at];
    for (const row of this.#rows.slice(at + 1)) {
      if (row.streamId === streamId && row.message.jsonrpc) await send(row.id, row.message);
    }
    return streamId;
  }

  forget() {
    this.#rows = [];
  }
}

// The same, which also tells the SDK whether it knows a token.
export class CheckedStore extends OrderedStore {
  #streams = new Map();

  async storeEvent(streamId, message) {
    const id = await super.storeEvent(streamId, message);
    this.#streams.set(id, streamId);
    return id;
  }

  async getStreamIdForEventId(eventId) {
    return this.#streams.get(eventId);
  }

  forget() {
    super.forget();
    this.#streams.clear();
  }
}
