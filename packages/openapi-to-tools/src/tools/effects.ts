import { isSafeMethod } from '@toolhost/tool-config/http/headers';
import type { Annotations } from '@toolhost/tool-config/tool';
import type { ApiOperation } from '../model.ts';

/** Verbs of operations that delete or remove something. */
const destructiveVerbs = new Set(
  'cancel clear delete destroy drop erase kill purge remove reset revoke terminate uninstall wipe'.split(' '),
);
/** Verbs of operations that change something, although some APIs use them with GET. */
const changingVerbs = new Set(
  'add approve archive assign close create disable edit enable insert invite lock mark merge move open pause publish reboot register reject rename replace restart restore resume run save send set start stop submit trigger unlock update upload upsert write'.split(
    ' ',
  ),
);
/** Verbs of operations that only read, although some APIs use them with POST. */
const readingVerbs = new Set('count find list lookup msearch query search'.split(' '));
/** Query languages. A query in one of them may change data. */
const queryLanguages = /\b(?:cypher|graphql|mutations?|n1ql|sparql|sql|statements?)\b/i;

/**
 * Returns the annotations of an operation whose words contradict its method: a GET that cancels, a POST that searches.
 * Its verbs are the first words of the parts of its operation ID and of its summary, and the last word of its path.
 * When in doubt, an operation does not count as read-only, because clients call read-only tools without asking.
 */
export function inferAnnotations({
  method,
  operationId = '',
  summary,
  description,
  path,
}: ApiOperation): Annotations | undefined {
  // A leading word that is the method carries no information: GET_TerminateInstances.
  const idWithoutMethod = operationId.replace(/^(?:GET|POST|PUT|PATCH)_/, '');
  const idParts = idWithoutMethod.split(/[./:#]|__|(?<=[A-Za-z])_(?=[A-Z])/).map(splitWords);
  const route = path.split(/[?#]/)[0] ?? '';
  const lastSegment = route.split(/[/:]/).findLast((segment) => segment !== '' && !/[{}]/.test(segment)) ?? '';
  const action = /[?#]/.test(path) ? splitWords(/=([^&]*)/.exec(path)?.[1] ?? '') : [];
  const lastWords = route.endsWith('}') ? [] : splitWords(lastSegment);
  const firstWords = [...idParts, splitWords(summary), action, lastWords].flatMap(([firstWord]) =>
    firstWord === undefined ? [] : [firstWord],
  );
  // `answerCallbackQuery` ends with a noun.
  const lastWord = lastWords.filter((word, index) => index === lastWords.length - 1 && word !== 'query');
  const verbs = new Set([...firstWords, ...lastWord].map(toInfinitive));
  const isDestroying = !verbs.isDisjointFrom(destructiveVerbs);
  const isChanging = isDestroying || !verbs.isDisjointFrom(changingVerbs);
  if (isSafeMethod(method))
    return isChanging ? { readOnlyHint: false, destructiveHint: isDestroying, idempotentHint: false } : undefined;
  if (isDestroying && method !== 'DELETE') return { destructiveHint: true };
  const mayRunQuery = queryLanguages.test(
    [idWithoutMethod, path, summary, description.slice(0, 1000)].join(' ').replaceAll('_', ' '),
  );
  const isPlain =
    !isChanging && !splitWords(idWithoutMethod).some((word) => destructiveVerbs.has(word) || changingVerbs.has(word));
  const isSearch = method === 'POST' && isPlain && !verbs.isDisjointFrom(readingVerbs) && !mayRunQuery;
  return isSearch ? { readOnlyHint: true, idempotentHint: true } : undefined;
}

function splitWords(text: string): string[] {
  return text
    .slice(0, 200)
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter((word) => word !== '');
}

const plainVerbs = new Set('check download export fetch get import read'.split(' '));

/** Returns true for a word that names the action of an operation. */
export function isVerb(word: string): boolean {
  return [destructiveVerbs, changingVerbs, readingVerbs, plainVerbs].some((verbs) => verbs.has(word));
}

/** Returns the base form of a verb, such as `cancel` for `cancels` and `search` for `searches`. */
function toInfinitive(word: string): string {
  for (const suffix of [/s$/, /es$/]) {
    const base = word.replace(suffix, '');
    if (destructiveVerbs.has(base) || changingVerbs.has(base) || (readingVerbs.has(base) && base !== 'list'))
      return base;
  }
  return word;
}
