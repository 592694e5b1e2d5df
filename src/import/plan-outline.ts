/** Which operations a plan lists: for an agent the sums are often enough. The service reads this file at its start, and loads the import itself only for an import. */
export const reportKinds = ['none', 'chosen', 'all', 'problems'] as const;
export type ReportKind = (typeof reportKinds)[number];

/** Most entries of each list of a plan. */
export const planBounds = { groups: 1000, findings: 101, report: 2000, entries: 100, options: 50, notes: 20 } as const;

/** Which operations without a tool importing again lists: those that are news, or all. */
export const offeredKinds = ['new', 'all'] as const;
export type OfferedKind = (typeof offeredKinds)[number];

/** Largest document that is sent, in characters; one that is fetched may be twice as long. */
export const mostDocumentCharacters = 16 * 1024 * 1024;
