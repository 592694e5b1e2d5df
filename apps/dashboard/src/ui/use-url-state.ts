import { useSearchParams } from 'react-router';

/** Reads and writes list filters in the page URL, so that they can be shared and the back button works. */
export function useUrlState() {
  const [search, setSearch] = useSearchParams();
  return {
    get: (name: string) => search.get(name) || undefined,
    /** `isStep` adds a history entry. `removes` names a parameter that does not fit the new value. */
    set: (name: string, value: string | null | undefined, { isStep = false, removes = '' } = {}) => {
      // Reads the current URL, because two changes may happen before the next render.
      const next = new URLSearchParams(location.search);
      if (value) next.set(name, value);
      else next.delete(name);
      next.delete(removes);
      setSearch(next, { replace: !isStep, preventScrollReset: true });
    },
    clear: () => setSearch({}, { replace: true }),
  };
}
