/**
 * Size statistics of a field in JSON responses, with the fields inside it, as plain data to store. List items are
 * merged. `bytes` and `around` are bytes of compact JSON; the other numbers are counts.
 */
export type FieldStats = {
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
  fields: FieldStats[];
};

/** Returns true if a field can be part of a path in `response_fields`, where names are joined by dots. */
export function isPathSegment(name: string): boolean {
  return name !== '' && !name.includes('.') && name.trim() === name;
}

/** Merges the statistics of the same field from several responses. The result may share objects with them. */
export function mergeStats(statsList: readonly FieldStats[]): FieldStats | undefined {
  const [first] = statsList;
  // Responses without common fields have thousands of them, so merging must not copy them repeatedly.
  if (!first || statsList.length === 1) return first;
  const sum = (getCount: (stats: FieldStats) => number) =>
    statsList.reduce((total, stats) => total + getCount(stats), 0);
  const inner = Map.groupBy(
    statsList.flatMap(({ fields }) => fields),
    ({ name }) => name,
  );
  const isConstant = first.always !== undefined && statsList.every(({ always }) => always === first.always);
  return {
    name: first.name,
    times: sum(({ times }) => times),
    bytes: sum(({ bytes }) => bytes),
    objects: sum(({ objects }) => objects),
    around: sum(({ around }) => around),
    empty: sum(({ empty }) => empty),
    urls: sum(({ urls }) => urls),
    ...(isConstant && { always: first.always as string }),
    ...(statsList.some(({ isPartial }) => isPartial) && { isPartial: true as const }),
    fields: [...inner.values()].flatMap((sameField) => mergeStats(sameField) ?? []),
  };
}

/**
 * Maximum number of fields of a response, outer objects first, and of one object: an object with more is a map by id.
 */
const maxFields = { perResponse: 250, perObject: 120 };

/** Removes fields beyond the limits. An object keeps all of its fields or none. */
export function capFields(response: FieldStats, limits = maxFields): FieldStats {
  const queue = [response];
  let keptCount = 0;
  for (const stats of queue) {
    const { length } = stats.fields;
    if (length > limits.perObject || keptCount + length > limits.perResponse) {
      stats.fields = [];
      stats.isPartial = true;
    }
    keptCount += stats.fields.length;
    queue.push(...stats.fields);
  }
  return response;
}
