/** Under which names answers are remembered; a change makes what begins with the same word stale. */
export const queryKeys = {
  session: ['session'],
  sessionEnded: ['ended'],
  unreachable: ['unreachable'],
  servers: ['servers'],
  server: (slug: string) => ['servers', slug],
  versions: (slug: string) => ['servers', slug, 'versions'],
  secrets: (slug: string) => ['servers', slug, 'secrets'],
  limits: (slug: string) => ['limits', slug],
  activity: ['activity'],
  keys: ['keys'],
  calls: (filter: object) => ['calls', filter],
  call: (id: string) => ['calls', 'one', id],
  statistics: (filter: object) => ['calls', 'statistics', filter],
  grants: (slug: string) => ['grants', slug],
  audit: ['audit'],
  members: ['members'],
} as const;
