import { getField, toList, toText } from '../document/lenient.ts';
import type { DescribedInput } from './described-requests.ts';
import type { BodyField } from './request-bodies.ts';

/** Header, query parameter, or form field, as collections list them. */
export type CollectionPair = { name: string; value: string; description: string; isDisabled: boolean; isFile: boolean };

/** Reads the pairs of a list. Pairs without a name are left out. */
export function readPairs(list: unknown): CollectionPair[] {
  return toList(list).flatMap((entry): CollectionPair[] => {
    const name = toText(getField(entry, 'key') ?? getField(entry, 'name'));
    if (name === '') return [];
    return [
      {
        name,
        value: toText(getField(entry, 'value')),
        description: readDescriptionText(getField(entry, 'description')),
        isDisabled: getField(entry, 'disabled') === true || getField(entry, 'enabled') === false,
        isFile: getField(entry, 'type') === 'file',
      },
    ];
  });
}

/** Reads a description, which is a text or an object with the text in `content`. */
export function readDescriptionText(value: unknown): string {
  return toText(value) || toText(getField(value, 'content'));
}

export function toDescribedInputs(
  location: DescribedInput['location'],
  pairs: readonly CollectionPair[],
): DescribedInput[] {
  return pairs.map(({ name, value, description }) => ({ location, name, value, description }));
}

/** Returns the headers that are not disabled. */
export function listSentHeaders(pairs: readonly CollectionPair[]): [name: string, value: string][] {
  return pairs.filter(({ isDisabled }) => !isDisabled).map(({ name, value }) => [name, value]);
}

/** Converts pairs to form fields. Includes disabled pairs, because agents may send them as optional fields. */
export function toFormFields(pairs: readonly CollectionPair[]): BodyField[] {
  return pairs.map(({ name, value, isFile, description }) => ({
    name,
    value: isFile ? '' : value,
    isFile,
    description,
  }));
}

/** Adds missing query parameters to a URL. Includes disabled pairs, because agents may send them as optional inputs. */
export function addQuery(url: string, pairs: readonly CollectionPair[]): string {
  const [urlWithoutQuery = '', query = ''] = url.split(/\?(.*)/s);
  const existingNames = new Set(query.split('&').map((pair) => pair.split('=')[0]));
  const addedPairs = pairs
    .filter(({ name }) => !existingNames.has(name) && !existingNames.has(encodeURIComponent(name.toWellFormed())))
    .map(
      ({ name, value }) =>
        `${encodeURIComponent(name.toWellFormed())}=${value.includes('{{') ? value : encodeURIComponent(value.toWellFormed())}`,
    );
  const fullQuery = [...(query === '' ? [] : [query]), ...addedPairs].join('&');
  return fullQuery === '' ? url : `${urlWithoutQuery}?${fullQuery}`;
}
