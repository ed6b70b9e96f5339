// A place for an event stream, which the tabs of a browser share.
//
// With HTTP/1.1 a browser has six connections to a host. A stream takes one for as long as it lasts, so with six open tabs a
// seventh could not even load. Four tabs may have a stream; a tab that is opened or shown takes the place of another one.

const SLOTS = 4;

export class StreamSlot {
  private release: (() => void) | undefined;
  private isTaking = false;

  /** `onLost` is called when another tab has taken the place. */
  constructor(private readonly onLost: () => void) {}

  /** Takes a place: a free one, or that of another tab. Browsers have no locks for pages without TLS of other machines. */
  async take(): Promise<void> {
    const locks = (navigator as { locks?: LockManager }).locks;
    if (locks === undefined || this.release !== undefined || this.isTaking) return;
    this.isTaking = true;
    try {
      for (let slot = 0; slot < SLOTS; slot += 1) {
        if (await this.request(locks, slot, { ifAvailable: true })) return;
      }
      await this.request(locks, Math.floor(Math.random() * SLOTS), { steal: true });
    } finally {
      this.isTaking = false;
    }
  }

  free(): void {
    const { release } = this;
    this.release = undefined;
    release?.();
  }

  /** Returns whether the place was taken. It is held until it is freed, or until another tab takes it. */
  private request(locks: LockManager, slot: number, options: LockOptions): Promise<boolean> {
    return new Promise((resolve) => {
      let own: (() => void) | undefined;
      const hold = (lock: Lock | null) => {
        resolve(lock !== null);
        if (lock === null) return undefined;
        return new Promise<void>((released) => {
          own = released;
          this.release = released;
        });
      };
      locks.request(`teamster-stream-${slot}`, options, hold).catch(() => {
        resolve(false);
        if (own !== undefined && this.release === own) {
          this.release = undefined;
          this.onLost();
        }
      });
    });
  }
}
