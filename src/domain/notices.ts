/** What people and programs can be told of. */
export const noticeEvents = {
  'upstream.failing': {
    label: 'An API fails',
    text: 'More than half of at least 20 calls of ten minutes, or of two, had no good answer.',
  },
  'key.expiring': { label: 'A key expires', text: 'An API key ends within seven days.' },
  'key.unused': { label: 'A key is not used', text: 'An API key was not used for 90 days.' },
  'login.ended': {
    label: 'A login ended',
    text: 'The provider no longer honours it, so the agent has to log in again.',
  },
  'description.changed': {
    label: 'A description changed',
    text: 'The description of an API that is watched differs from the last import.',
  },
  'quota.near': { label: 'A quota is nearly used up', text: '80 % or more of it are used.' },
} as const;

export type NoticeEvent = keyof typeof noticeEvents;
export const noticeEventNames = Object.keys(noticeEvents) as [NoticeEvent, ...NoticeEvent[]];

/** Something to tell. `subject` is a slug, the id of a key, or the name of a quota. */
export type Notice = {
  event: NoticeEvent;
  subject: string;
  /** A sentence without any text of a caller or an upstream. */
  text: string;
  /** The same thing has the same key, and is told once while its notice is kept. */
  dedupe: string;
};

/** The page of the dashboard that a notice is about. */
export function noticePath({ event, subject }: Pick<Notice, 'event' | 'subject'>): string {
  switch (event) {
    case 'upstream.failing':
      return `/calls?server=${subject}`;
    case 'login.ended':
      return `/servers/${subject}/logins`;
    case 'description.changed':
      return `/servers/${subject}/import`;
    case 'quota.near':
      return '/settings';
    default:
      return '/keys';
  }
}

const minuteMs = 60_000;
/** Pauses after each attempt that failed; after the last one it is given up, a day after the first. */
const pausesMs = [1, 5, 30, 120, 420, 864].map((minutes) => minutes * minuteMs);

/** When a delivery is tried again after so many attempts; undefined when it is given up. */
export function nextAttemptAt(now: number, attempts: number): number | undefined {
  const pause = pausesMs[attempts - 1];
  return pause === undefined ? undefined : now + pause;
}

export const mostWebhooks = 5;
export const noticesKeptMs = 30 * 24 * 60 * minuteMs;
export const mostNoticesInDay = 200;
/** People who are mailed of one notice. */
export const mostMailed = 50;
