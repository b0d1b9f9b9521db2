/**
 * Shows the progress of something slow, with the time elapsed: one line, updated in place on a terminal and repeated now and then
 * elsewhere.
 */
import type { WriteStream } from "node:tty";

const TERMINAL_INTERVAL = 500;
const LOG_INTERVAL = 15_000;
const CLEAR_LINE = "\r\u001b[2K";

export class Progress {
  readonly #stream: WriteStream;
  readonly #started = Date.now();
  #timer: NodeJS.Timeout | undefined;
  #last = "";

  constructor(stream: WriteStream) {
    this.#stream = stream;
  }

  /** From now on, the state is what `word` returns each time. */
  show(word: () => string): void {
    clearInterval(this.#timer);
    const print = () => {
      this.#last = `${elapsed(Date.now() - this.#started)}  ${word()}`;
      this.#stream.write(this.#stream.isTTY ? CLEAR_LINE + this.#last : `${this.#last}\n`);
    };
    this.#timer = setInterval(print, this.#stream.isTTY ? TERMINAL_INTERVAL : LOG_INTERVAL);
  }

  end(): void {
    clearInterval(this.#timer);
    if (this.#stream.isTTY && this.#last !== "") this.#stream.write("\n");
  }
}

function elapsed(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000);
  return `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, "0")}s`;
}
