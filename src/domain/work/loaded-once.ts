/** A part of the program that is loaded when it is first needed. */
export function loadedOnce<Part>(load: () => Promise<Part>): () => Promise<Part> {
  let loaded: Promise<Part> | undefined;
  return () => {
    loaded ??= load();
    return loaded;
  };
}
