import { useSearchParams } from 'react-router';

/** What a list shows, in the address of its page, so that it can be shared and the back button works. */
export function useAddress() {
  const [search, setSearch] = useSearchParams();
  return {
    get: (name: string) => search.get(name) || undefined,
    /** `isStep`: the back button takes it back. `without`: what does not fit the new value. */
    set: (name: string, value: string | null | undefined, { isStep = false, without = '' } = {}) =>
      setSearch(
        (before) => {
          const next = new URLSearchParams(before);
          if (value) next.set(name, value);
          else next.delete(name);
          next.delete(without);
          return next;
        },
        { replace: !isStep, preventScrollReset: true },
      ),
    clear: () => setSearch({}, { replace: true }),
  };
}
