const unitsMs = { h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 } as const;
const longestMs = 10 * 365 * unitsMs.d;

/** The time that `90d` after `now` is, in ISO 8601. @throws Error that says what is allowed */
export function expiryOf(text: string, now: number): string {
  const match = /^([1-9]\d{0,5})([hdw])$/.exec(text.trim());
  const span = match ? Number(match[1]) * unitsMs[match[2] as keyof typeof unitsMs] : Number.NaN;
  if (!(span <= longestMs)) throw new Error('allowed: hours, days or weeks, such as 12h, 90d or 4w, up to 10 years');
  return new Date(now + span).toISOString();
}
