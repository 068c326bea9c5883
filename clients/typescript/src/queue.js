/** What one side puts in and the other waits for. */
export class Queue {
  #items = [];
  #waiting = [];
  #end = null;

  put(item) {
    const waiter = this.#waiting.shift();
    if (waiter) waiter.resolve({ value: item, done: false });
    else this.#items.push(item);
  }

  /** Behind what is in it, every reader gets the end, or the error. */
  end(error) {
    this.#end ??= { error };
    for (const waiter of this.#waiting.splice(0)) {
      if (error) waiter.reject(error);
      else waiter.resolve({ value: undefined, done: true });
    }
  }

  next() {
    if (this.#items.length) return Promise.resolve({ value: this.#items.shift(), done: false });
    if (this.#end?.error) return Promise.reject(this.#end.error);
    if (this.#end) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }
}
