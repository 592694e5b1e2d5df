import { useSearchParams } from 'react-router';

/** What a list shows, in the address of its page, so that it can be shared and the back button works. */
export function useAddress() {
  const [search, setSearch] = useSearchParams();
  return {
    get: (name: string) => search.get(name) || undefined,
    set: (name: string, value: string | null) =>
      setSearch(
        (before) => {
          const next = new URLSearchParams(before);
          if (value) next.set(name, value);
          else next.delete(name);
          return next;
        },
        { replace: true, preventScrollReset: true },
      ),
    clear: () => setSearch({}, { replace: true }),
  };
}
