// Loaded into a process before its program: makes its clock wrong by WRONG_CLOCK_MS.
const RealDate = Date;
const ahead = Number(process.env.WRONG_CLOCK_MS);
globalThis.Date = class extends RealDate {
  constructor(...given) {
    if (given.length > 0) super(...given);
    else super(RealDate.now() + ahead);
  }

  static now() {
    return RealDate.now() + ahead;
  }
};
