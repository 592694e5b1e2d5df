import { stem } from './stem.ts';

/** Words that APIs and the people who ask use for the same thing. */
const groups = [
  'create add new make open insert register',
  'delete remove destroy erase drop',
  'get retrieve fetch show read view lookup return',
  'list all enumerate browse',
  'search find query lookup',
  'update edit change modify patch set replace rename',
  'cancel abort stop terminate',
  'send post publish',
  'invite invitation',
  'archive unarchive',
  'upload attach',
  'download export',
  'merge combine',
  'repository repo project',
  'user member people person account',
  'message chat text',
  'channel conversation',
  'online presence active',
  'comment note reply',
  'close update',
  'reopen update',
  'complete finish close done',
  'copy duplicate clone',
  'move transfer',
  'subscription recurring plan',
  'refund reimburse',
  'org organization organisation company workspace',
  'config configuration setting preference',
  'permission access role grant',
  'log logs output',
  'bill invoice',
  'pr pull',
  'picture photo image avatar icon logo',
  'label tag',
  'file document content attachment',
  'start begin run trigger launch',
  'enable activate',
  'disable deactivate',
  'assign assignee owner',
  'latest newest recent last',
];

/** The other terms of the groups of each term. */
export const synonyms: ReadonlyMap<string, readonly string[]> = synonymsOf(groups.map((group) => group.split(' ')));

function synonymsOf(lists: readonly (readonly string[])[]): Map<string, readonly string[]> {
  const found = new Map<string, Set<string>>();
  for (const terms of lists.map((words) => words.map(stem))) {
    for (const term of terms) {
      const others = found.get(term) ?? new Set();
      for (const other of terms) if (other !== term) others.add(other);
      found.set(term, others);
    }
  }
  return new Map([...found].map(([term, others]) => [term, [...others]]));
}
