import { useSearchParams } from 'react-router';

/** What a list shows, in the address of its page, so that it can be shared and the back button works. */
export function useAddress() {
  const [search, setSearch] = useSearchParams();
  return {
    get: (name: string) => search.get(name) || undefined,
    /** `isStep`: the back button takes it back. `without`: what does not fit the new value. */
    set: (name: string, value: string | null | undefined, { isStep = false, without = '' } = {}) => {
      // Not what was drawn last: two changes may come before the page is drawn again.
      const next = new URLSearchParams(location.search);
      if (value) next.set(name, value);
      else next.delete(name);
      next.delete(without);
      setSearch(next, { replace: !isStep, preventScrollReset: true });
    },
    clear: () => setSearch({}, { replace: true }),
  };
}
