// When findings opened and ended: what the topics remember, and what was seen since.

const TWICE = 5000; // milliseconds within which the same event is told by the topics and by what was seen
const MOST = 4000;

export class Marks {
  #all = [];

  /** In the order of their times: {at (milliseconds), finding, state (opened or resolved), severity}. */
  get all() {
    return this.#all;
  }

  /** Take in marks whose `at` is RFC 3339; those that are known already change nothing. */
  add(marks) {
    const fresh = marks.map((mark) => ({ ...mark, at: Date.parse(mark.at) })).filter((mark) => mark.at && !this.#knows(mark));
    this.#all = [...this.#all, ...fresh].sort((one, other) => one.at - other.at).slice(-MOST);
  }

  forget() {
    this.#all = [];
  }

  #knows({ at, finding, state }) {
    return this.#all.some((each) => each.finding === finding && each.state === state && Math.abs(each.at - at) < TWICE);
  }

  before(moment) {
    return this.#all.findLast((mark) => mark.at < moment);
  }

  after(moment) {
    return this.#all.find((mark) => mark.at > moment);
  }

  /** The life of a finding as far as it is known: {opened, resolved}, each a mark or undefined. */
  lifeOf(finding) {
    const own = this.#all.filter((mark) => mark.finding === finding);
    return { opened: own.findLast((mark) => mark.state === "opened"), resolved: own.findLast((mark) => mark.state === "resolved") };
  }
}
