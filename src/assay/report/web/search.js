// Search in the answers and programs of a run.
import { searchTexts } from "./filters.js";
import { useLoaded } from "./load.js";
import { joinKey } from "./router.js";

// Return the rows that contain the text of the query, or null while they are not known. A reader
// asks for it by `code=1`, since all texts are unpacked for it.
export function useTextMatches(source, run, index, query) {
  const wanted = query.code ? query.q || "" : "";
  const read = (chunk) => source.block(joinKey("run", run, "texts", chunk));
  const [found] = useLoaded(() => searchTexts(index, wanted, read), [index, wanted]);
  return wanted && found ? found : null;
}
