/** What is ended or refused so that others have room, or because its client is too slow. */
export const givenUpKinds = ['connection', 'unread_answer', 'memory', 'operation'] as const;

/** Is told of each one. */
export type OnGivenUp = (what: (typeof givenUpKinds)[number]) => void;
