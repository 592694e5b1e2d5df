/** The clocks of a process. */
export type ProcessClocks = {
  /** The clock of this process in epoch ms, which may be wrong and may step. */
  now: () => number;
  /** Monotonic ms, from a zero of this process. */
  clock: () => number;
  boot: Boot;
};

/** The start of the machine, since when its monotonic clock counts for all processes. */
export type Boot = {
  /** Empty where the system has no id of it. */
  id: string;
  /** How long before the zero of `clock` it was, in ms. */
  beforeMs: number;
};

/**
 * What the processes of a machine share while its clock is behind their time: that is at least `level` and half of the time
 * since the boot.
 */
export type MachineLevel = { boot: string; level: number };

/** What has to change in the database, so that all processes get the same time. */
export type DueLevel = { store: MachineLevel } | { remove: MachineLevel };

/** A smaller difference is not worth a write. */
const sharedAboveMs = 100;
/** A clock that was further ahead was wrong for everybody, and nobody should live in its time for days. */
const mostAheadMs = 24 * 60 * 60_000;

/**
 * The time of SQLite: every process is on the machine of the file, and that machine's clock is the database's. When it
 * steps forward, as after a sleep, so does the time here. When it steps back, time passes at half speed until the two are
 * equal, so that it never goes back: expired things stay expired, and things that should expire soon still do. Only a step
 * back of more than a day is followed at once.
 *
 * Half of the time since the boot is the same number in all processes, and so is their time once they have the same level.
 * The highest is right: it is of the process that read the clock last before the step. A level of an earlier boot has no
 * meaning. Where boots have no id it does no harm either: the time since the boot is shorter now, so the level is met sooner.
 */
export function machineClock({ now, clock, boot }: ProcessClocks) {
  let level = Number.NEGATIVE_INFINITY;
  let stored: MachineLevel | undefined;
  /** The level of the machine's clock, and half of the time since the boot in eighths of a ms, whose sums are exact. */
  const read = () => {
    const half = Math.floor((clock() + boot.beforeMs) * 4) / 8;
    const own = now() - half;
    if (level < own || level > own + mostAheadMs) level = own;
    return { own, half };
  };
  const machineNow = () => {
    const { half } = read();
    return Math.floor(level + half);
  };
  const counts = (one: MachineLevel, own: number) =>
    one.boot === boot.id && one.level > own && one.level <= own + mostAheadMs;
  return {
    now: machineNow,
    skewMs: () => now() - machineNow(),
    /** Takes what a look found in the database. */
    take(found: MachineLevel | undefined): void {
      const { own } = read();
      stored = found;
      if (found && counts(found, own)) level = Math.max(level, found.level);
    },
    due(): DueLevel | undefined {
      const { own } = read();
      if (stored && !counts(stored, own)) return { remove: stored };
      if (level <= own + sharedAboveMs || (stored && stored.level >= level)) return undefined;
      return { store: { boot: boot.id, level: Math.ceil(level) } };
    },
  };
}
