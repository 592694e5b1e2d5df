const unitsS = { h: 3600, d: 86_400, w: 7 * 86_400 } as const;
const longestS = 10 * 365 * unitsS.d;

/** The seconds in a span such as `90d`. @throws Error that says what is allowed */
export function secondsOf(text: string): number {
  const match = /^([1-9]\d{0,5})([hdw])$/.exec(text.trim());
  const span = match ? Number(match[1]) * unitsS[match[2] as keyof typeof unitsS] : Number.NaN;
  if (!(span <= longestS)) throw new Error('allowed: hours, days or weeks, such as 12h, 90d or 4w, up to 10 years');
  return span;
}
