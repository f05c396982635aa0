// Each group of rows whose values are hard to write: the rows that the filter of the page has for it. Returns the groups of which
// a filter has other rows than the group, and how many groups have a filter.
(async () => {
  const { compile, filterOf, joined, toggled } = await import("/assets/filter.js");
  const { groupOf, split } = await import("/assets/groups.js");
  const values = [undefined, "", "none", "a1", "A1", "a1 ", "a 1", "say \"x\"", "\"", "\"\"x", "-a", "=a", "==a", "a==b", "x:y", "not known", "</b><script>", "1\n2"];
  const fields = ["state", "cluster", "namespace", "vendor", "model"];
  const rows = values.flatMap((value, at) => fields.map((field) => ({ name: `${field}-${at}`, labels: {}, [field]: value })));
  for (const label of ["rack", "x.example/rack", "state", "Rack"]) {
    for (const [at, value] of values.entries()) rows.push({ name: `${label}-${at}`, labels: value === undefined ? {} : { [label]: value } });
  }
  const wrong = [];
  let links = 0;
  for (const q of ["", "a", "-a1", "\"a", "a \"1", "rack=a1", "-state:"]) {
    const all = rows.filter(compile(q));
    for (const by of [...fields, "label:rack", "label:x.example/rack", "label:state", "label:Rack", "label:constructor"]) {
      for (const [value, own] of split(all, groupOf(by))) {
        const part = filterOf({ by, value });
        const isWanted = !(by.startsWith("label:") && value === "");
        const isLink = part !== undefined;
        links += isLink ? 1 : 0;
        const found = isLink ? rows.filter(compile(joined(q, [part]))) : own;
        const toggles = !isLink || q === part || (rows.filter(compile(toggled(q, part))).length === own.length && toggled(toggled(q, part), part) === joined(q, []));
        const isSame = found.length === own.length && own.every((row) => found.includes(row));
        if (isLink !== isWanted || !isSame || !toggles) wrong.push(JSON.stringify([q, by, value, part, found.length, own.length, toggles]));
      }
    }
  }
  // A label that is empty is not one that is missing.
  const isEmpty = (row) => row.labels.rack === "";
  for (const [q, wanted] of [["rack==", isEmpty], ["-rack==", (row) => !isEmpty(row)]]) {
    const found = rows.filter(compile(q));
    if (found.length !== rows.filter(wanted).length || !found.every(wanted)) wrong.push(JSON.stringify([q, found.length]));
  }
  return { wrong, links };
})()
