/**
 * How much of some JSON answers a field takes, with the fields inside it. Items of lists are merged. Plain data, as it
 * is stored; all numbers but `times` and `objects` are bytes of compact JSON.
 */
export type FieldUse = {
  /** Empty for the answer itself. */
  name: string;
  /** How often it occurs. */
  times: number;
  /** Names and values. */
  bytes: number;
  /** How many objects are its values, or items of lists that are. */
  objects: number;
  /** What stays when only some fields inside it are kept, besides names and objects: lists, and items that are no objects. */
  around: number;
  /** How often it is null, an empty text, an empty list or an empty object. */
  empty: number;
  /** How often it is the URL of something. */
  urls: number;
  /** Its JSON text, where that is short and always the same. */
  always?: string;
  /** Whether it has fields that are not among these, so that it can only be kept whole. */
  isPartial?: true;
  fields: FieldUse[];
};

/** Whether a field can be named in a path of `response_fields`, whose names are joined by dots. */
export function isPathName(name: string): boolean {
  return name !== '' && !name.includes('.') && name.trim() === name;
}

/** The uses of the same field in several answers as one. The result may share parts with them. */
export function mergeUses(uses: readonly FieldUse[]): FieldUse | undefined {
  const [first] = uses;
  // Answers that have nothing in common have thousands of fields, and merging them must not copy these again and again.
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

/** Most fields of an answer, those of outer objects first, and most of one object: one with more is a map by id. */
const mostFields = { ofAnswer: 250, ofObject: 120 };

/** Takes the fields out that are too many. An object keeps all of its fields or none. */
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
