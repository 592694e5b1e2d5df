import { useInterval } from '@mantine/hooks';
import { useReducer } from 'react';

const daySeconds = 86_400;

/** Units, each with its length and the duration from which it is used, in seconds. */
const steps: [unit: Intl.RelativeTimeFormatUnit, size: number, from: number][] = [
  ['year', 365 * daySeconds, 365 * daySeconds],
  ['month', 30 * daySeconds, 60 * daySeconds],
  ['day', daySeconds, daySeconds],
  ['hour', 3_600, 3_600],
  ['minute', 60, 60],
];

function formatRelative(at: number, now: number, isToMinute: boolean): string {
  const seconds = Math.round((at - now) / 1000);
  const format = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
  for (const [unit, size, from] of steps) {
    // A key that was just created for 30 days must not be shown with 29.
    if (seconds >= from * 0.99) return format.format(Math.round(seconds / size), unit);
    if (seconds <= -from) return format.format(Math.trunc(seconds / size), unit);
  }
  return isToMinute || Math.abs(seconds) < 10 ? 'just now' : format.format(seconds, 'second');
}

/** Formats the time in the user's time zone, to the second or the minute. */
export function formatExactTime(at: string, isToMinute = false): string {
  const timeStyle = isToMinute ? 'short' : 'long';
  return new Date(at).toLocaleString('en', { dateStyle: 'medium', timeStyle, hourCycle: 'h23' });
}

const tickMs = 30_000;

/** Relative time, with the exact time on hover. `isToMinute` omits seconds, for a time that is stored once per minute. */
export function Time({ at, isToMinute = false }: { at: string; isToMinute?: boolean }) {
  const [, tick] = useReducer((count: number) => count + 1, 0);
  useInterval(tick, tickMs, { autoInvoke: true });
  return (
    <time dateTime={at} title={formatExactTime(at, isToMinute)}>
      {formatRelative(Date.parse(at), Date.now(), isToMinute)}
    </time>
  );
}

/** Time of day, with the date if it was not today. */
export function ClockTime({ at }: { at: string }) {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  const day = { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' } as const;
  return (
    <time dateTime={at} title={formatExactTime(at)}>
      {date.toLocaleString('en', { ...(isToday ? { timeStyle: 'medium' } : day), hourCycle: 'h23' })}
    </time>
  );
}
