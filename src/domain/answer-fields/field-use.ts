/**
 * Size statistics of a field in JSON responses, with the fields inside it. List items are merged. This is plain data,
 * as it is stored. `bytes` and `around` are bytes of compact JSON; the other numbers are counts.
 */
export type FieldUse = {
  /** Empty for the response itself. */
  name: string;
  /** Number of occurrences. */
  times: number;
  /** Bytes of names and values. */
  bytes: number;
  /** Number of objects among its values, or among the items of its lists. */
  objects: number;
  /**
   * Bytes that remain if only some of its inner fields are kept, not counting names and objects: lists, and items that
   * are not objects.
   */
  around: number;
  /** Number of occurrences that are null, an empty text, an empty list, or an empty object. */
  empty: number;
  /** Number of occurrences that are a URL. */
  urls: number;
  /** JSON text of its value, if it is short and always the same. */
  always?: string;
  /** True if it has fields that are not listed here, so it can only be kept whole. */
  isPartial?: true;
  fields: FieldUse[];
};

/** Returns true if a field can be part of a path in `response_fields`, where names are joined by dots. */
export function isPathName(name: string): boolean {
  return name !== '' && !name.includes('.') && name.trim() === name;
}

/** Merges the statistics of the same field from several responses. The result may share objects with them. */
export function mergeUses(uses: readonly FieldUse[]): FieldUse | undefined {
  const [first] = uses;
  // Responses without common fields have thousands of them, so merging must not copy them repeatedly.
  if (!first || uses.length === 1) return first;
  const sum = (of: (use: FieldUse) => number) => uses.reduce((total, use) => total + of(use), 0);
  const inner = Map.groupBy(
    uses.flatMap(({ fields }) => fields),
    ({ name }) => name,
  );
  const isAlways = first.always !== undefined && uses.every(({ always }) => always === first.always);
  return {
    name: first.name,
    times: sum(({ times }) => times),
    bytes: sum(({ bytes }) => bytes),
    objects: sum(({ objects }) => objects),
    around: sum(({ around }) => around),
    empty: sum(({ empty }) => empty),
    urls: sum(({ urls }) => urls),
    ...(isAlways && { always: first.always as string }),
    ...(uses.some(({ isPartial }) => isPartial) && { isPartial: true as const }),
    fields: [...inner.values()].flatMap((same) => mergeUses(same) ?? []),
  };
}

/**
 * Maximum number of fields of a response, outer objects first, and of one object: an object with more is a map by id.
 */
const mostFields = { ofAnswer: 250, ofObject: 120 };

/** Removes fields beyond the limits. An object keeps all of its fields or none. */
export function boundFields(answer: FieldUse, most = mostFields): FieldUse {
  const queue = [answer];
  let kept = 0;
  for (const use of queue) {
    const { length } = use.fields;
    if (length > most.ofObject || kept + length > most.ofAnswer) {
      use.fields = [];
      use.isPartial = true;
    }
    kept += use.fields.length;
    queue.push(...use.fields);
  }
  return answer;
}
